// The types of the API under short names, and the types that the console adds.
import type { components, operations } from './generated';

export type { Json } from './generated';

export type Schemas = components['schemas'];
export type Operation = keyof operations;
type JsonOf<Part> = Part extends { content: { 'application/json': infer Body } } ? Body : never;
/** The parameters in the query of an operation. */
export type QueryOf<Name extends Operation> = NonNullable<operations[Name]['parameters']['query']>;
/** The body of a request. */
export type BodyOf<Name extends Operation> = operations[Name] extends { requestBody?: infer Body } ? JsonOf<Body> : undefined;
/** The body of the answer to a request that succeeded. */
export type AnswerOf<Name extends Operation> = JsonOf<operations[Name]['responses'][keyof operations[Name]['responses'] & (200 | 201)]>;

export type RunStatus = Schemas['RunStatus'];
export type Status = RunStatus | Schemas['Status'];
export type FormField = Schemas['FormField'];
export type FileText = Schemas['FileText'];
export type Problem = Schemas['Problem'];
export type Question = Schemas['QuestionReport'];
export type BudgetReport = Schemas['BudgetReport'];
export type CurrentActivity = Schemas['CurrentActivity'];
export type RunRow = Schemas['RunRow'];
export type RunList = Schemas['ListReport'];
export type ConditionReport = Schemas['ConditionReport'];
export type Lane = Schemas['LaneReport'];
export type LoopReport = Schemas['LoopReport'];
export type RateLimitWait = Schemas['RateLimitWait'];
export type StatusReport = Schemas['StatusReport'];
export type LoopEntry = Schemas['LoopSummary'];
export type Counts = Schemas['Totals'];
export type StripCell = Schemas['StripCell'];
export type Strip = Schemas['StripReport'];
export type IterationRow = Schemas['IterationEntry'];
export type ActionRow = Schemas['ActionReport'];
export type Iteration = Schemas['IterationReport'];
export type Difference = Schemas['DifferenceReport'];
export type GraphNode = Schemas['Node'];
export type GraphEdge = Schemas['Edge'];
export type Graph = Schemas['Graph'];
export type Source = Schemas['SourceReport'];
export type HistoryEvent = Schemas['NumberedEvent'];
export type Place = Schemas['PlaceReport'];
export type BulkVerb = Schemas['BulkVerb'];
export type Hello = Schemas['Hello'];
