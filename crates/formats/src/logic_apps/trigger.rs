//! The trigger of a Logic Apps definition: its value in a run, its recurrence, and its conditions.
//! In Logic Apps, a trigger fires only if its conditions hold.

use super::LogicApps;
use super::recurrence::HINT as RECURRENCE;
use crate::actions::ActionReader;
use crate::actions::{member, names_option};
use crate::builder::{nothing, object, only, step, text};
use windlass_expression::Value;
use windlass_model::hir::{After, Block, DagStep, Step, StepKind, Workflow};
use windlass_model::model::{
    Concurrency, ConcurrencyPolicy, Input, InputKind, Missed, Name, Overlap, Schedule, Status,
    Trigger, When,
};
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Node};
use windlass_value::words;

/// The code of a run that ends because a condition of its trigger does not hold.
const CODE: &str = "TriggerConditionNotMet";

/// Makes all steps of `body` run after the step `guard`.
pub(super) fn run_first(guard: Step, body: &mut Block) {
    let Block::Dag(steps) = body else { return };
    for first in steps.iter_mut().filter(|one| one.after.is_empty()) {
        first.after.push(After {
            name: guard.name.clone(),
            statuses: vec![Status::Succeeded],
            span: guard.span,
        });
    }
    steps.insert(
        0,
        DagStep {
            step: guard,
            after: Vec::new(),
        },
    );
}

/// Returns the members of a trigger's body that are numbers or booleans by its schema.
fn typed_members(trigger: &Node) -> Vec<Input> {
    let inputs = trigger.get_any_case("inputs");
    let schema = inputs.and_then(|inputs| inputs.get_any_case("schema"));
    let properties = schema.and_then(|schema| schema.get("properties"));
    let properties = properties.and_then(Node::entries).unwrap_or_default();
    let typed = properties.iter().filter_map(|entry| {
        let kind = match entry.value.get("type").and_then(Node::as_str)? {
            "integer" => InputKind::Integer,
            "number" => InputKind::Number,
            "boolean" => InputKind::Boolean,
            _ => return None,
        };
        let description = entry.value.get("description").and_then(Node::as_str);
        Some(Input {
            name: Name::from(entry.key.as_str()),
            kind,
            default: None,
            description: description.map(str::to_owned),
            span: entry.key_span,
        })
    });
    typed.collect()
}

/// The types of triggers in the schema of Logic Apps definitions.
const TYPES: [&str; 14] = [
    "ApiConnection",
    "ApiConnectionNotification",
    "ApiConnectionWebhook",
    "ApiManagement",
    "Batch",
    "Http",
    "HttpWebhook",
    // Those of Power Automate.
    "OpenApiConnection",
    "OpenApiConnectionNotification",
    "OpenApiConnectionWebhook",
    "Recurrence",
    "Request",
    "ServiceProvider",
    "SlidingWindow",
];

/// The keys of a trigger that have no effect here.
const OTHER_KEYS: [&str; 10] = words! {
    kind inputs recurrence description metadata correlation splitOnConfiguration evaluatedRecurrence
    trackedProperties runAfter
};

impl ActionReader<'_, LogicApps> {
    /// Reads the first trigger. A run begins as if this trigger had fired.
    /// Returns a step that cancels the run if the trigger would not have fired.
    pub(super) fn trigger(
        &mut self,
        entry: &Entry,
        resource: Value,
        workflow: &mut Workflow,
    ) -> Option<Step> {
        let hint = "for example triggers: { manual: { type: Request, kind: Http } }";
        let entries = self.map(entry, hint);
        let names = entries.iter().map(|entry| Name::from(entry.key.as_str()));
        self.format.triggers = names.collect();
        if let Some(second) = entries.get(1) {
            let what = "only the first trigger starts runs";
            let hint = "the input is taken as what the first trigger delivers";
            self.warning("second-trigger", second.key_span, what, hint);
        }
        let first = entries.first()?;
        let what = format!("the trigger `{}`", first.key);
        let mut fields = self.fields(&first.value, &what, hint)?;
        let kind = fields.get("type");
        let label = kind.and_then(|entry| self.text(entry, hint));
        if let Some((kind, label)) = kind.zip(label)
            && let Some(near) =
                nearest(label, TYPES).filter(|near| !near.eq_ignore_ascii_case(label))
        {
            let what = format!("`{label}` is not a type of trigger");
            let hint = format!("did you mean `{near}`?");
            self.warning("unknown-type", kind.value.span, what, hint);
        }
        self.format.trigger_awaits_response =
            label.map(|label| label.eq_ignore_ascii_case("Request"));
        if label.is_none() {
            let what = format!("{what} has no type");
            let hint = "the run's input is taken as what it delivers";
            self.warning("missing-key", first.key_span, what, hint);
        }
        if let Some(split) = fields.get("splitOn") {
            let what = "`splitOn` starts a run for each item in Azure; here one run gets the whole \
                        body, and no others are started";
            let hint = "put the actions into a Foreach over the list, or start a run for each item";
            self.warning("not-supported", split.key_span, what, hint);
        }
        let conditions = fields.get("conditions");
        let guard = conditions.and_then(|entry| self.guard(entry, &first.key));
        let options = fields.get("operationOptions");
        self.known_options(options);
        if let Some(entry) = options
            && names_option(options, "EnableSchemaValidation")
        {
            let what = "`EnableSchemaValidation` does nothing here: every input is a run";
            let hint = "begin with a ParseJson of `@triggerBody()` that has the same schema";
            self.warning("not-supported", entry.key_span, what, hint);
        }
        let configuration = fields.get("runtimeConfiguration");
        self.known_configuration(configuration, &["runs", "maximumWaitingRuns"]);
        if let Some(data) = configuration.and_then(|entry| member(entry, "secureData")) {
            let what = "`secureData` of a trigger hides nothing here: its input lies readable in \
                        the store";
            let hint =
                "declare a parameter of type `securestring` for values that must stay hidden";
            self.warning("not-supported", data.key_span, what, hint);
        }
        workflow.concurrency = configuration.and_then(|entry| self.trigger_concurrency(entry));
        let is_recurrence = label.is_some_and(|label| label.eq_ignore_ascii_case("Recurrence"));
        let recurrence = match is_recurrence {
            true => fields.required(self, "recurrence", first.key_span, RECURRENCE),
            false => None,
        };
        let recurrence = recurrence.and_then(|entry| {
            let computed = self.computed_recurrence(entry, &workflow.parameters)?;
            self.recurrence(&computed)
        });
        if label.is_some_and(|label| label.eq_ignore_ascii_case("Request"))
            && let Some(inputs) = fields.get("inputs")
        {
            let what = format!("`inputs` of `{}`", first.key);
            self.misspelt_keys(
                &inputs.value,
                &what,
                &["schema", "method", "relativePath"],
                &[],
            );
        }
        fields.allow(&OTHER_KEYS);
        fields.finish(self);
        workflow.schedule = recurrence.map(|recurrence| Schedule {
            when: When::Recurrence(recurrence),
            overlap: match names_option(options, "SingleInstance") {
                true => Overlap::Skip,
                false => Overlap::Allow,
            },
            missed: Missed::Skip,
        });
        workflow.trigger = Some(Trigger {
            name: Name::from(first.key.as_str()),
            workflow: resource,
            body: typed_members(&first.value),
        });
        guard
    }

    /// Reads `concurrency.runs` of a trigger: further runs wait (Logic Apps reference, "Change trigger concurrency").
    fn trigger_concurrency(&mut self, configuration: &Entry) -> Option<Concurrency> {
        let concurrency = member(configuration, "concurrency")?;
        if let Some(waiting) = member(concurrency, "maximumWaitingRuns") {
            let what = "`maximumWaitingRuns` has no effect: any number of runs waits";
            let hint = "Azure refuses further runs, here they are accepted";
            self.warning("not-supported", waiting.key_span, what, hint);
        }
        let runs = member(concurrency, "runs")?;
        let max = self
            .whole(&self.with_parameters(&runs.value))
            .and_then(|runs| u32::try_from(runs).ok());
        let Some(max @ 1..=100) = max else {
            let hint = "for example concurrency: { runs: 1 }";
            self.wrong_type(&runs.value, "`runs`", "a whole number from 1 to 100", hint);
            return None;
        };
        Some(Concurrency {
            key: None,
            policy: ConcurrencyPolicy::Queue,
            max,
        })
    }

    /// Makes a step that cancels the run unless all conditions of a trigger hold.
    fn guard(&mut self, entry: &Entry, trigger: &str) -> Option<Step> {
        let hint =
            "for example conditions: [{ expression: \"@equals(triggerBody()?['state'], 'new')\" }]";
        let name = Name::from(format!("{trigger}.conditions"));
        let mut checks = Vec::new();
        for item in self.list(entry, hint)? {
            let mut fields = self.fields(item, "a condition", hint)?;
            let expression = fields.required(self, "expression", item.span, hint)?;
            fields.finish(self);
            let condition = self.condition(expression)?;
            let shown = expression.value.as_str().unwrap_or("the expression");
            let message = format!("the trigger `{trigger}` does not fire: {shown} does not hold");
            let error = object([("code", text(CODE)), ("message", text(&message))]);
            let cancel = StepKind::Terminate {
                status: Status::Cancelled,
                error: Some(error),
            };
            let check = Name::from(format!("{name}.{}", checks.len() + 1));
            let ending = Name::from(format!("{check}.else"));
            self.declare(&check, item.span);
            self.declare(&ending, item.span);
            let check_kind = StepKind::If {
                arms: vec![(condition, nothing())],
                otherwise: only(step(ending, "terminate", cancel, item.span)),
            };
            checks.push(step(check, "if", check_kind, item.span));
        }
        if checks.is_empty() {
            return None;
        }
        self.declare(&name, entry.key_span);
        let checks = StepKind::Block(Block::Sequence(checks));
        Some(step(name, "scope", checks, entry.key_span))
    }
}
