// Generated from docs/openapi.json by `npm run types`. Do not edit.

/** Any value: the description leaves its type open. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the process answers. */
        get: operations["get_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the server counts, in the format of OpenMetrics if the header `Accept` has it, else in the text format of
         *     Prometheus.
         */
        get: operations["get_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the server accepts work: earlier runs have been recovered, runs progress, its store accepts writes, and it is
         *     not stopping.
         */
        get: operations["get_readiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit log: the changes by clients, with names and addresses. Only for the role admin. */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/callbacks/{run}/{signal}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the question that an address of `callbackUrl` answers: a page to a browser, else JSON. */
        get: operations["get_callback"];
        put?: never;
        /** Answers a signal with the address of `callbackUrl`. The body is the payload as JSON, or the form of the page. */
        post: operations["answer_callback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dump": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The checkpoints of runs as they lie in the store, in the order of their ids;
         *     `docs/dump.schema.json` is its schema. A page without runs is behind the last one.
         */
        get: operations["dump_all"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What happens to all runs, or to some, the latest of each as often as `max_hz` says. Event names, and the
         *     schemas of their data: `hello` (`Hello`; the first one, and again when the store fails or works again),
         *     `rows` (an array of `RunRow`; the runs of a list that changed, each as with `detail=true`), `run` (`RunRow`;
         *     one of those that are named), `status` (`StatusReport`; its status), `gone` (an array of ids of runs that
         *     were pruned). A client that reconnects with the last id receives what changed meanwhile.
         */
        get: operations["get_live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{workflow}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a run of a saved workflow that has a webhook. The request is signed as the workflow says. */
        post: operations["start_by_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Completions at a position of a text: keys, values, and names, functions and members in expressions. */
        post: operations["complete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/edit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Edits a text: comments, layout and quotes of everything else stay as they are. Nothing is stored. */
        post: operations["edit_text"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/hover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What there is to say of a place of a text; of an expression also its value in an iteration of a run. */
        post: operations["hover"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/panel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The panel of a node: its fields, for a form that knows no format. */
        post: operations["get_panel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/schedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** When runs of a text would start automatically. The body is that of `validate`. */
        post: operations["get_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/stubs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stubs for a text: an answer for each action that needs one, to be filled in. The body is that of
         *     `validate`.
         */
        post: operations["get_stubs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/symbols": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The actions and nodes of a text, one within the other. The body is that of `validate`. */
        post: operations["symbols"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tries one action of a text, and sends nothing: returns the request that it would send, or the action's result. */
        post: operations["try_action"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/language/types": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The types of nodes that can be added to a text of a format. */
        post: operations["get_types"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller may do. */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/prune": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Prunes runs that have ended, while others continue. */
        post: operations["prune_runs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes every run that has not ended. Paused runs stay paused unless `paused` is true. */
        post: operations["resume_all"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists runs, newest first. */
        get: operations["list_runs"];
        put?: never;
        /**
         * Starts a run. When it is answered, the run's first step is durable. With an `Idempotency-Key`,
         *     the same request answered again is the same run, with status 200.
         */
        post: operations["start_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pauses, resumes, cancels or retries many runs. Each run succeeds or fails on its own; failures have a
         *     reason. The response is sent when all changes are durable.
         */
        post: operations["bulk_runs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a run is where it is. */
        get: operations["get_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a run as cancelled: what is in flight is cut. */
        post: operations["cancel_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/difference": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What differs between two iterations. */
        get: operations["get_difference"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/dump": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The checkpoint of a run as it lies in the store; `docs/dump.schema.json` is its schema. */
        get: operations["get_dump"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The events of a run from the beginning, or after `Last-Event-ID`, and then as they happen.
         *     Event names: `history` (its id is its number, its data has `event` and `at`), `step` (status,
         *     loops, actions that began in them), `printed` (a line of a command that runs: action, stream, text; it is
         *     stored nowhere), `paused`, `stuck`, and `finished`, the last one. 204: everything was sent before.
         */
        get: operations["get_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A run in one document, to store or to send: why it is where it is, its graph, how the iterations of its
         *     loops ended, and all of a few of them. Its size is bounded, however large the run is.
         */
        get: operations["export_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The graph of a run's workflow, as it was when the run was started. */
        get: operations["get_graph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a run did: the iterations of its loops, and its events. */
        get: operations["get_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/iteration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One iteration, or what a run did outside of its loops: what the actions were given and gave, attempt by attempt, and the variables at its
         *     end. With `pointer`, the answer is the value at that place.
         */
        get: operations["get_iteration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/iterations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The iterations of a loop, page by page. `next` of a page is the `from` of the next one, or its `to`
         *     when the newest come first.
         */
        get: operations["list_iterations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/loops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The loops and foreaches that a run came to, the newest first. */
        get: operations["get_loops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses a run: what is in flight may end, nothing new starts. */
        post: operations["pause_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/places": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The places that `retry` accepts as `from`: the iterations and actions that the run reached, the newest first. */
        get: operations["get_places"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/printed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The last lines of the run's commands that run now. A command's lines are removed when it has ended. Lines
         *     that may contain a secret are left out.
         */
        get: operations["get_printed"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/result": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a run gave, or why it did not. */
        get: operations["get_result"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a run that is paused. */
        post: operations["resume_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts a run that failed, timed out or was cancelled once more, as a new run of the same
         *     program, marked with `windlass.retry_of`: from its beginning with the same input, or `from` an
         *     action or iteration with its state at that time. The old one stays as it ended.
         */
        post: operations["retry_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a signal to a run, for an action that waits for it now or later. */
        post: operations["signal_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/source": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The files that a run was started from, as they were then. */
        get: operations["get_source"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/strip": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How the iterations of a loop ended, and how long they took. */
        get: operations["get_strip"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/test-condition": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Evaluates a condition in the iterations of a past loop, up to the iteration after which the loop would
         *     have stopped.
         */
        post: operations["test_condition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begins the session of a browser. The response sets a cookie with the rights of the request's token. With a
         *     ticket of `windlass ui`, the cookie has all rights.
         */
        post: operations["begin_session"];
        /** Ends the session of a browser: the response removes its cookie, which is no longer accepted. */
        delete: operations["end_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the values that workflows have between their runs. */
        get: operations["list_state"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/state/{workflow}/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A value that a workflow has between its runs, with its version. */
        get: operations["get_state"];
        /** Writes a value that a workflow has between its runs. Runs that have begun do not see it, and fail if they write it too. */
        put: operations["put_state"];
        post?: never;
        /** Deletes a value that a workflow has between its runs: its next run begins with the initial value. */
        delete: operations["remove_state"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks a workflow and stores nothing. The body is the workflow as it is, YAML or JSON, or JSON with its text in it. */
        post: operations["validate_workflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the stored workflows, by name. */
        get: operations["list_workflows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A workflow with its text, its inputs and the limits of its loops. The header `ETag` has its version. */
        get: operations["get_workflow"];
        /**
         * Stores a workflow under a name, in place of the one that was there, which becomes a former version. Runs
         *     that were started continue with their version. The body is the workflow as it is, YAML or JSON, or JSON with its text in it.
         */
        put: operations["put_workflow"];
        post?: never;
        /** Deletes a workflow and its former versions. Its runs continue. */
        delete: operations["remove_workflow"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}/schedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When runs of a workflow start automatically. */
        get: operations["get_workflow_schedule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}/schedule/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pauses the schedule of a workflow: nothing starts until it is resumed, and times meanwhile are not missed. */
        post: operations["pause_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}/schedule/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes the schedule of a workflow. */
        post: operations["resume_schedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}/schedule/times": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The times of a schedule in the past, 1,000 at most: those with runs and those without. `POST /v1/runs` with the id
         *     and the time of one starts its run.
         */
        get: operations["list_scheduled_times"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{name}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The versions of a workflow, the newest first, and how many of its runs do what. A run is pinned to the
         *     version that it was started with.
         */
        get: operations["get_workflow_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An action of an iteration. */
        ActionReport: {
            /** @description Its name. */
            action: string;
            /** @description Its attempts. */
            attempts: components["schemas"]["AttemptReport"][];
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Why it failed. */
            error?: string | null;
            /** @description What it was given, in its last attempt. */
            inputs?: Json;
            /**
             * Format: int64
             * @description The index of the innermost foreach's item, from 0.
             */
            item?: number | null;
            /** @description The idempotency key of a call. */
            key?: string | null;
            /** @description What it gave. */
            outputs?: Json;
            /** @description Where: `outer#2/inner#7/fetch`. */
            path: string;
            /** @description The blocks and choices around it, outermost first; loops are not among them. */
            scopes?: string[];
            started_at?: components["schemas"]["Timestamp"] | null;
            /** @description How it ended, or `Running`. */
            status: components["schemas"]["Progress"];
        };
        /** @description The sender of a command, as audit entries and records of a run name it. */
        Actor: {
            /** @description Its IP address, `control socket`, or `command line` for a command that has opened the store itself. */
            from: string;
            /** @description The name of its token, or its Unix user; `anonymous` on a server without tokens. */
            name: string;
        };
        /** @description An attempt of an action. */
        AttemptReport: {
            /**
             * Format: int32
             * @description From 1.
             */
            attempt: number;
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Why it failed. */
            error?: string | null;
            /** @description When it began. */
            started_at: components["schemas"]["Timestamp"];
        };
        /** @description A command that changed something, or should have. */
        AuditEntry: components["schemas"]["Actor"] & {
            /** @description The command: `start`, `pause`, `put-workflow`, … */
            action: string;
            at: components["schemas"]["Timestamp"];
            /** @description Unique; later ones are greater, except within a millisecond. */
            id: string;
            /** @description `done`, the kind of the error, or `unknown` if the server or the connection ended before the command did. */
            result?: string;
            /** @description The run, the workflow, or WORKFLOW/NAME of a value between runs. */
            target?: string | null;
        };
        /** @description Entries of the audit log, the newest first. */
        AuditReport: {
            entries: components["schemas"]["AuditEntry"][];
            /** @description Further entries that the limit left out. */
            more: number;
        };
        /** @description A run whose end another one waits for. */
        AwaitedRun: {
            /** @description Its id. */
            run: string;
            stopped?: components["schemas"]["Stop"] | null;
        };
        /** @description How a session begins without a token. */
        BeginSession: {
            /** @description A ticket of `windlass ui`: good once, for a minute. */
            ticket?: string | null;
        };
        /** @description What a loop used of a budget, and how much it may use. */
        BudgetReport: {
            /** @description Which limit: `tokens` or `cost`. */
            budget: string;
            /**
             * Format: double
             * @description How much they may use.
             */
            limit: number;
            /** @description Both for people: `tokens 12,300 of 50,000`. */
            text: string;
            /**
             * Format: double
             * @description What the actions of the loop used until now.
             */
            used: number;
        };
        /** @description A run that a command was done to. */
        BulkDone: {
            /** @description The run that it is retried as. */
            new_run?: string | null;
            /** @description The run. */
            run: string;
            status?: components["schemas"]["RunStatus"] | null;
        };
        /** @description A run that a command could not be done to. */
        BulkFailed: {
            /** @description The word of the problem's type: `unknown-run`, `run-ended`, … */
            code: string;
            /** @description Why. */
            detail: string;
            /** @description The run. */
            run: string;
        };
        /** @description What a command to many runs did. */
        BulkReport: {
            /** @description The runs that it was done to. */
            done: components["schemas"]["BulkDone"][];
            /** @description The others. */
            failed: components["schemas"]["BulkFailed"][];
        };
        /** @description One command to many runs. */
        BulkRuns: {
            /** @description What is done. */
            do: components["schemas"]["BulkVerb"];
            /** @description The runs, at most 1,000. */
            runs: string[];
        };
        /**
         * @description What is done to runs.
         * @enum {string}
         */
        BulkVerb: "pause" | "resume" | "cancel" | "retry";
        /** @description One place where two results differ. */
        Changed: {
            /** @description What it was; null when it was not there. */
            from: Json;
            /** @description Where: `fetch.body.remaining`; of lists of different length, `….length`. */
            path: string;
            /** @description What it is; null when it is gone. */
            to: Json;
        };
        /** @description Something that a field may be. */
        Choice: {
            /** @description What is shown. */
            label: string;
            /** @description The type of a port. */
            type?: string | null;
            /** @description The value. */
            value: string;
        };
        /** @description A column of a table. */
        Column: {
            /** @description What it may be. */
            choices?: components["schemas"]["Choice"][];
            /** @description The key of its values in a row. */
            id: string;
            /** @description What it is called. */
            label: string;
            /** @description How it is edited. */
            type: components["schemas"]["FieldKind"];
        };
        /** @description Completions at a position. */
        Completion: {
            /** @description The items, the likeliest first. What is typed already has not been compared with them. */
            items: components["schemas"]["CompletionItem"][];
            /** @description What an item replaces. */
            range: components["schemas"]["TextRange"];
        };
        /** @description One completion. */
        CompletionItem: {
            /** @description Its type, or how it is called. */
            detail?: string | null;
            /** @description What there is to say of it. */
            documentation?: string | null;
            /** @description The text that is inserted. */
            insert: string;
            /** @description What it is. */
            kind: components["schemas"]["CompletionKind"];
            /** @description What is shown. */
            label: string;
            /** @description Whether that text has places to fill in: `$0`, `${1:name}`. */
            snippet?: boolean;
        };
        /**
         * @description What an item is.
         * @enum {string}
         */
        CompletionKind: "key" | "value" | "function" | "action" | "variable" | "port" | "input" | "snippet";
        /** @description A loop's condition and why it is what it is. */
        ConditionReport: {
            /** @description What it reads, with the values of now. */
            reads: components["schemas"]["Read"][];
            /** @description As written. */
            text: string;
            /** @description Its value at its last check. */
            value?: boolean | null;
        };
        /** @description The values that a condition would have had in the iterations of a past loop. */
        ConditionTest: {
            /**
             * Format: int64
             * @description The last iteration of the run's loop, from 0.
             */
            ended_at?: number | null;
            /** @description Why it has no value in an iteration: the first such mistake. */
            error?: string | null;
            /** @description The last iterations that were checked, at most 100. */
            rows: components["schemas"]["TestedIteration"][];
            /**
             * Format: int64
             * @description The number of iterations that are not stored whole, or are behind the first 2,000.
             */
            skipped: number;
            /**
             * Format: int64
             * @description The iteration after which the loop would have stopped, from 0.
             */
            stopped_at?: number | null;
            /**
             * Format: int64
             * @description The number of iterations that were checked.
             */
            tried: number;
        };
        /** @description What a run waits for at one place. */
        CurrentActivity: {
            /** @description The action. */
            action: string;
            /**
             * Format: int32
             * @description Which attempt runs or is waited for, from 1.
             */
            attempt?: number | null;
            awaits_run?: components["schemas"]["AwaitedRun"] | null;
            /** @description The run that a `workflow` action waits for. */
            child?: string | null;
            /** @description The command of a shell action, or the handler. */
            detail?: string | null;
            due_at?: components["schemas"]["Timestamp"] | null;
            /** @description The iteration or item that it is directly in: `outer#2/each#7`. */
            inside?: string | null;
            /** @description The idempotency key of a call. */
            key?: string | null;
            last_error?: components["schemas"]["LastError"] | null;
            /** @description The path of the innermost loop around it. */
            loop?: string | null;
            /**
             * Format: int32
             * @description How many there may be.
             */
            max_attempts?: number | null;
            /** @description The method of an HTTP call. */
            method?: string | null;
            question?: components["schemas"]["QuestionReport"] | null;
            /** @description Whether a call waits until it may start: as many are in flight as may be (`--max-effects`). */
            queued?: boolean;
            rate_limit?: components["schemas"]["RateLimitWait"] | null;
            /**
             * Format: int64
             * @description The number of these signals that were received before: an answer has it, so that it answers no later wait.
             */
            received?: number | null;
            /** @description The signal it waits for. */
            signal?: string | null;
            since?: components["schemas"]["Timestamp"] | null;
            /** @description What people call it, where that is not the name. */
            title?: string | null;
            /** @description Its authored type. */
            type?: string | null;
            /** @description The address of an HTTP call. */
            uri?: string | null;
            /** @description `call`, `retry`, `delay`, `sleep`, `signal`, `limit`, or `next` if it continues at once. */
            waits_for: string;
            /** @description Whether its run waits until there is memory for it (`--max-guest-memory`). */
            waits_for_memory?: boolean;
        };
        /** @description The workflow that is stored under a name now. */
        CurrentWorkflow: {
            /** @description The text of its file. */
            text: string;
            /** @description What it is compiled from, as a hash. */
            version: string;
        };
        /** @description One diagnostic as data. */
        DiagnosticReport: {
            /** @description A stable code such as `unknown-type`. */
            code: string;
            /**
             * Format: int32
             * @description From 1, in characters.
             */
            column: number;
            /** @description The file. */
            file?: string | null;
            /** @description Ways to put it right, by edits of its file. */
            fixes?: components["schemas"]["Fix"][];
            /** @description What to do. */
            hint?: string | null;
            /**
             * Format: int32
             * @description How many characters are wrong.
             */
            length: number;
            /**
             * Format: int32
             * @description From 1.
             */
            line: number;
            /** @description What is wrong, in one line. */
            message: string;
            /** @description The same place as editors count it. */
            range: components["schemas"]["TextRange"];
            /** @description `error` or `warning`. */
            severity: string;
        };
        /**
         * @description What differs between two iterations: their conditions, how their actions ended, and their inputs
         *     and outputs. Variables and inputs are compared if both iterations are stored whole.
         */
        DifferenceReport: {
            /** @description Where they differ, 1,000 places at most: `result.fetch.body.n`, `variables.n`. */
            changed: components["schemas"]["Changed"][];
            /** @description The one. */
            from: string;
            /** @description The run. */
            run: string;
            /** @description The other. */
            to: string;
            /**
             * Format: int64
             * @description In how many places they are the same.
             */
            unchanged: number;
        };
        /** @description A line from a node to another one of the same frame. */
        Edge: {
            /** @description Whether it leads upwards, to what ran before. */
            back?: boolean;
            /** @description The id of the node at its start. */
            from: string;
            /** @description The port at its start. */
            from_port?: string | null;
            /**
             * @description `next`; `branch`, out of a choice; `failed`, when the node before it did not succeed; `data`,
             *     from port to port of a canvas; `previous`, the same from the iteration before; `again`, from
             *     the end of an iteration to the next one; `break`, out of a loop.
             */
            kind: string;
            /** @description The text next to it. */
            label?: string | null;
            /**
             * @description Where the label begins: the left end of the middle of its text, which has room for 36
             *     characters.
             */
            label_at?: [
                number,
                number
            ] | null;
            /** @description A line of horizontal and vertical parts. */
            points: [
                number,
                number
            ][];
            /** @description The id of the node that it goes to. */
            to: string;
            /** @description The port that it goes to. */
            to_port?: string | null;
        };
        /** @description One edit. */
        Edit: {
            /** @description The field's id. */
            field?: string | null;
            /** @description The node's path. */
            node?: string | null;
            /** @enum {string} */
            op: "set";
            /** @description What is set instead of a field. */
            pointer?: string | null;
            /** @description The value. */
            value?: Json;
        } | {
            /** @enum {string} */
            op: "remove";
            /** @description The pointer. */
            pointer: string;
        } | {
            /** @description Its name; one is made where none is given. */
            name?: string | null;
            /** @description The path of an existing node, to which `where` is relative; empty: at the top. */
            node?: string;
            /** @enum {string} */
            op: "add";
            /** @description Its type, as `POST /v1/language/types` lists them. */
            type: string;
            /** @description What it is instead of the smallest one of its type. */
            value?: Json;
            /** @description Whether it is added before, after or inside of `node`. */
            where: components["schemas"]["Where"];
            /**
             * Format: double
             * @description Where it is drawn, of a canvas.
             */
            x?: number | null;
            /**
             * Format: double
             * @description Where it is drawn, of a canvas.
             */
            y?: number | null;
        } | {
            /** @description Its path. */
            node: string;
            /** @enum {string} */
            op: "delete";
        } | {
            /** @description The new name. */
            name: string;
            /** @description Its path. */
            node: string;
            /** @enum {string} */
            op: "rename";
        } | {
            /** @description `node.port`, or `node` for the order alone. */
            from: string;
            /** @description The path of the loop that they are in. */
            in?: string | null;
            /** @enum {string} */
            op: "connect";
            /** @description `node.port`, or `node`. */
            to: string;
        } | {
            /** @description `node.port`, or `node`. */
            from: string;
            /** @description The path of the loop that they are in. */
            in?: string | null;
            /** @enum {string} */
            op: "disconnect";
            /** @description `node.port`, or `node`. */
            to: string;
        } | {
            /** @description Its path. */
            node: string;
            /** @enum {string} */
            op: "move";
            /**
             * Format: double
             * @description From the left.
             */
            x: number;
            /**
             * Format: double
             * @description From above.
             */
            y: number;
        };
        /** @description Edits of a text. */
        EditText: {
            /** @description Reads it as this format. */
            dialect?: string | null;
            /** @description The edits, one after the other. */
            edits: components["schemas"]["Edit"][];
            /** @description What its file is called. */
            file?: string | null;
            /** @description The files that it names. */
            files?: components["schemas"]["FileText"][];
            /** @description The workflow's text. */
            text: string;
        };
        /** @description A text that was edited. */
        Edited: {
            /** @description What changed from the text that came. */
            edits: components["schemas"]["TextEdit"][];
            /** @description The path of the node that was added or renamed. */
            node?: string | null;
            /** @description All of it. */
            text: string;
        };
        /** @description What went wrong, and where. */
        ErrorReport: {
            /** @description The action. */
            action?: string | null;
            /** @description A status or exit code, when there is one. */
            code?: string | null;
            /** @description The workflow file. */
            file?: string | null;
            /**
             * Format: int64
             * @description That loop's iteration, from 0.
             */
            iteration?: number | null;
            /** @description The fault's kind: `http`, `timeout`, `limit`, … */
            kind: string;
            /**
             * Format: int32
             * @description The line, from 1.
             */
            line?: number | null;
            /** @description The path of the innermost loop around it. */
            loop?: string | null;
            /** @description What happened, in one line. */
            message: string;
        };
        /** @description A run in one document. */
        ExportReport: {
            graph?: components["schemas"]["Graph"] | null;
            /** @description Its loops and foreaches, the newest first, 20 at most. */
            loops: components["schemas"]["LoopExport"][];
            /**
             * Format: int64
             * @description The number of further stored loops.
             */
            more_loops: number;
            /** @description What it did outside of its loops. */
            outermost: components["schemas"]["IterationReport"];
            /** @description Why it is where it is. */
            status: components["schemas"]["StatusReport"];
        };
        /**
         * @description The number of runs by status, by workflow and by hour. Each count ignores the filter of its own kind, and so
         *     shows what another choice would return.
         */
        Facets: {
            /**
             * @description The runs that were started in the last 24 hours, by the beginning of the hour of their start, and
             *     by what they do, as `status`. An hour without runs is left out.
             */
            hour: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            /** @description By what they do. `SucceededWithFailures` has those of `Succeeded` of which actions failed. */
            status: {
                [key: string]: number;
            };
            /** @description By workflow. */
            workflow: {
                [key: string]: number;
            };
        };
        /** @description An operation whose `cancel` failed: it may still run at its server. */
        FailedCancel: {
            /** @description Why it failed. */
            message: string;
            /** @description The action. */
            operation: string;
        };
        /** @description An `on_failure` or `on_finish` that failed: no one received the alert. */
        FailedEnding: {
            /** @description `on_failure` or `on_finish`. */
            ending: string;
            /** @description Why it failed. */
            message: string;
        };
        /** @description A foreach that succeeded although items of it failed. */
        FailedItems: {
            /**
             * Format: int64
             * @description How many failed.
             */
            failed: number;
            /** @description Of how many, of which foreach, and why the first did. */
            message: string;
        };
        /** @description Failures with the same message, but for its numbers. */
        FailureCount: {
            /**
             * Format: int64
             * @description In how many iterations.
             */
            count: number;
            /**
             * Format: int64
             * @description The first of those.
             */
            first: number;
            /**
             * Format: int64
             * @description The last of those.
             */
            last: number;
            /** @description What happened, with `#` for each number. */
            message: string;
        };
        /** @description A field of a panel. */
        Field: {
            /**
             * Format: int64
             * @description The most that the operator allows.
             */
            cap?: number | null;
            /** @description What it may be. */
            choices?: components["schemas"]["Choice"][];
            /** @description Of a table, whose value is a list of rows. */
            columns?: components["schemas"]["Column"][];
            /** @description What it is when it is not set. */
            default?: Json;
            /** @description What is wrong with it. */
            error?: string | null;
            /** @description What it means. */
            help?: string | null;
            /** @description Its id in the panel. */
            id: string;
            /** @description What it is called. */
            label: string;
            parts?: components["schemas"]["Parts"] | null;
            /** @description Where it is in the text: a JSON pointer. */
            pointer: string;
            /** @description How it is edited. */
            type: components["schemas"]["FieldKind"];
            /** @description What it is; null: it is not set. */
            value: Json;
        };
        /**
         * @description How a field is edited.
         * @enum {string}
         */
        FieldKind: "text" | "number" | "bool" | "duration" | "choice" | "expression" | "condition" | "file" | "table" | "code";
        /** @description A file of a workflow. */
        FileReport: {
            /** @description Its path, as it was named. */
            path: string;
            /** @description Its text. */
            text: string;
        };
        /** @description A further file of a workflow. */
        FileText: {
            /** @description Its path from the workflow's folder. */
            path: string;
            /** @description Its text. */
            text: string;
        };
        /** @description A way to put a mistake right. */
        Fix: {
            /** @description How the file of the mistake changes. */
            edits: components["schemas"]["TextEdit"][];
            /** @description What it does. */
            title: string;
        };
        /** @description Branches that run side by side. */
        ForkReport: {
            /**
             * Format: int64
             * @description How many branches have ended.
             */
            ended: number;
            /**
             * Format: int64
             * @description How many of those failed.
             */
            failed?: number;
            /** @description The iteration or item that it is directly in: `outer#2/each#7`. */
            inside?: string | null;
            /** @description Of a foreach: the items in flight, at most 200. */
            lanes?: components["schemas"]["LaneReport"][];
            /** @description The step's name. */
            name: string;
            /** @description Of a foreach: its path. */
            path?: string | null;
            /**
             * Format: int64
             * @description How many run.
             */
            running: number;
            /**
             * Format: int64
             * @description How many there are.
             */
            total: number;
            /** @description `foreach`, `parallel` or `dag`. */
            type: string;
        };
        /** @description A field of a form: a member of an answer. */
        FormField: {
            /** @description The value that the form begins with. */
            default?: Json;
            /** @description What people read. */
            label: string;
            /** @description The member. */
            name: string;
            /** @description Of `options`: the values. */
            options?: Json[];
            /** @description Whether an answer must have it. */
            required: boolean;
            type: components["schemas"]["FormFieldKind"];
        };
        /**
         * @description What a field holds.
         * @enum {string}
         */
        FormFieldKind: "text" | "boolean" | "integer" | "number" | "options" | "json";
        /** @description A workflow as nodes and edges with places, laid out from top to bottom. Places are absolute. */
        Graph: {
            /** @description The edges between nodes of the same frame. */
            edges: components["schemas"]["Edge"][];
            /**
             * Format: int64
             * @description How high all of it is.
             */
            height: number;
            /** @description The nodes, frames before what is in them. */
            nodes: components["schemas"]["Node"][];
            root?: components["schemas"]["Node"] | null;
            /**
             * Format: int64
             * @description How wide all of it is.
             */
            width: number;
        };
        /** @description The first event: the server that sends the others. */
        Hello: {
            /** @description The role of its token: `view`, `operate` or `admin`. */
            access: string;
            /** @description Why the store accepts no writes. */
            outage?: string | null;
            /**
             * @description Whether everything that changed after the client's last event follows, pruned runs included. False for a
             *     new client, and after a restart of the server.
             */
            resumed: boolean;
            /** @description When the server was started. */
            server_started_at: components["schemas"]["Timestamp"];
            /** @description Its version. */
            version: string;
        };
        /** @description What happened; other members depend on `event` */
        HistoryEvent: {
            at: components["schemas"]["Timestamp"];
            event: string;
        } & {
            [key: string]: Json;
        };
        /** @description A run's iterations and, if requested, its events. */
        HistoryReport: {
            /** @description The format of its workflow. */
            dialect?: string | null;
            /** @description The number of stored iterations that ended before these. */
            earlier: number;
            /** @description The events; absent if they were not requested. */
            events?: components["schemas"]["NumberedEvent"][] | null;
            /**
             * Format: int64
             * @description The number of iterations of these loops, from the first one on, that are no longer stored.
             */
            forgotten: number;
            /**
             * Format: int64
             * @description The number of requested events before these that are no longer stored.
             */
            forgotten_events: number;
            /** @description The iterations that ended, in the order they ended. */
            iterations: components["schemas"]["IterationRow"][];
            /** @description The run. */
            run: string;
            /** @description What it is doing. */
            status: components["schemas"]["RunStatus"];
        };
        /** @description A run that a webhook started. */
        HookStart: {
            /** @description Its id. */
            run: string;
        };
        /** @description What there is to say of a place. */
        Hover: {
            /** @description Why the value is missing. */
            error?: string | null;
            /** @description What it describes. */
            range: components["schemas"]["TextRange"];
            /** @description Plain text. */
            text: string;
            /** @description The value in the requested iteration. */
            value?: Json;
        };
        /** @description An input that a workflow declares. */
        InputReport: {
            /** @description What it is when it is not given. */
            default: Json;
            /** @description Its name. */
            name: string;
            /** @description Whether it must be given. */
            required: boolean;
            /** @description `any`, `string`, `integer`, `number`, `boolean`, `array` or `object`. */
            type: string;
        };
        /** @description An iteration in a page. Its result is null if it is no longer stored. */
        IterationEntry: components["schemas"]["IterationRow"] & {
            /**
             * Format: int32
             * @description The most attempts that one of its actions took.
             */
            attempts: number;
            /**
             * Format: int64
             * @description How long it took, in milliseconds.
             */
            duration_ms: number;
            /** @description Why it failed; of one that succeeded with failures, the last of those. */
            error?: string | null;
            /** @description How much of it is stored. */
            stored: components["schemas"]["StoredDetail"];
        };
        /** @description One iteration, or what a run did outside of its loops: that has no path. A value over 64 KiB is `{"$large": {bytes, preview, pointer}}`. */
        IterationReport: {
            /** @description What it did, as far as the history has it. */
            actions: components["schemas"]["ActionReport"][];
            /**
             * Format: int32
             * @description The most attempts that one of its actions took.
             */
            attempts: number;
            /** @description What the condition gave. */
            condition?: boolean | null;
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Why it failed; of one that succeeded with failures, the last of those. */
            error?: string | null;
            /**
             * Format: int64
             * @description Its number, from 0.
             */
            iteration: number;
            /** @description The loop's path. */
            loop: string;
            /** @description The iteration: `outer#2/inner#7`. */
            path: string;
            /** @description The outputs of its actions. */
            result?: Json;
            /** @description The run. */
            run: string;
            /** @description When it began. */
            started_at: components["schemas"]["Timestamp"];
            /** @description How it ended, or `Running`. */
            status: components["schemas"]["Progress"];
            /** @description How much of it is stored. */
            stored: components["schemas"]["StoredDetail"];
            /** @description The variables at its end. */
            variables?: Json;
            /** @description When it, or its loop before it, waited. */
            waits: components["schemas"]["WaitReport"][];
        };
        IterationRow: {
            condition?: boolean | null;
            ended_at: components["schemas"]["Timestamp"];
            iteration: number;
            path: string;
            result?: Json;
            started_at: components["schemas"]["Timestamp"];
            status: components["schemas"]["Status"];
        };
        /** @description A page of iterations. */
        IterationsReport: {
            /** @description The iterations. */
            iterations: components["schemas"]["IterationEntry"][];
            /** @description The loop's path. */
            loop: string;
            /**
             * Format: int64
             * @description Where the next page begins: its `from`, or its `to` when the newest come first.
             */
            next?: number | null;
            /** @description The run. */
            run: string;
        };
        /** @description An item of a foreach that is in flight. */
        LaneReport: {
            /**
             * Format: int32
             * @description Which attempt of its step runs or is waited for, from 1, where it is retried.
             */
            attempt?: number | null;
            /**
             * Format: int64
             * @description The item's index, from 0.
             */
            item: number;
            /** @description Its path: `each#3`. What is done in it has this path, or a longer one, in `inside`. */
            path: string;
            /** @description Since when. */
            since: components["schemas"]["Timestamp"];
        };
        /** @description Why an attempt failed. */
        LastError: {
            /** @description When. */
            at: components["schemas"]["Timestamp"];
            /** @description A status or exit code, when there is one. */
            code?: string | null;
            /** @description The fault's kind. */
            kind: string;
            /** @description What happened, in one line. */
            message: string;
        };
        /** @description The last iteration of a loop. */
        LastIteration: {
            /** @description What differs from the iteration before; headers of HTTP answers do not count. */
            changed: components["schemas"]["Changed"][];
            /** @description When. */
            ended_at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description From 1.
             */
            iteration: number;
            /** @description What it gave. */
            result: Json;
            /** @description How it ended. */
            status: components["schemas"]["Status"];
            /**
             * Format: int64
             * @description For how many iterations the result has been the same.
             */
            unchanged: number;
        };
        /** @description A loop that ended at a limit. */
        LimitReached: {
            /**
             * Format: int64
             * @description How many iterations had ended, the last time.
             */
            iterations: number;
            /** @description `count`, `timeout`, `unchanged`, `tokens` or `cost`. */
            limit: components["schemas"]["LoopEnd"];
            /** @description Its place in the file: `outer/inner`. */
            loop: string;
            /**
             * Format: int64
             * @description How often it ended so; a loop within another one may do it in each iteration of that.
             */
            times: number;
            /** @description What people call it, where that is not its name. */
            title?: string | null;
            /** @description Its authored type. */
            type: string;
        };
        /** @description Runs, newest first, and how many there are that the limit left out. */
        ListReport: {
            facets?: components["schemas"]["Facets"] | null;
            /** @description How many more there are. */
            more: number;
            /** @description Where the next page begins, when there are more. */
            next?: string | null;
            /** @description The runs. */
            runs: components["schemas"]["RunRow"][];
            /** @description The number of runs on all pages. */
            total: number;
            /** @description The number of runs on all pages that continue automatically while a process owns the store. */
            unfinished: number;
        };
        /** @description What a loop that has ended used of a budget. */
        LoopBudget: components["schemas"]["BudgetReport"] & {
            /** @description The path of the loop. */
            path: string;
        };
        /** @description A loop in a list. */
        LoopCell: {
            /**
             * Format: int64
             * @description The iteration that runs, or the last one that ended, from 1.
             */
            iteration: number;
            /**
             * Format: int64
             * @description How many have ended.
             */
            iterations_completed: number;
            /**
             * Format: int64
             * @description How many may run.
             */
            max_iterations: number;
            /** @description Its name. */
            name: string;
            /** @description Its place in the run. */
            path: string;
            /**
             * @description How the last ones ended, a letter each, at most 24: `s`ucceeded, `f`ailed, `t`imed out,
             *     `c`ancelled, s`k`ipped, succeeded `w`ith failures.
             */
            recent: string;
            /** @description What people call it, where that is not the name. */
            title?: string | null;
        };
        /** @enum {string} */
        LoopEnd: "condition" | "break" | "count" | "timeout" | "failed" | "cancelled" | "repeat" | "unchanged" | "tokens" | "cost";
        /** @description A loop or foreach of a run. */
        LoopExport: {
            /**
             * @description The first ones, the last ones, and those that failed last, in the order of their numbers;
             *     without their results.
             */
            iterations: components["schemas"]["IterationEntry"][];
            /** @description The one that failed last, and the last one. */
            shown: components["schemas"]["IterationReport"][];
            /** @description How its iterations ended. */
            strip: components["schemas"]["StripReport"];
            /** @description The loop. */
            summary: components["schemas"]["LoopSummary"];
        };
        /** @description What bounds a loop. */
        LoopLimits: {
            /** @description When the condition is checked: `before` or `after` each iteration. */
            checks: string;
            /** @description The condition as written. */
            condition: string;
            /** @description Maximum cost of its actions: a number, or the expression that computes it. */
            cost?: string | null;
            /** @description Maximum number of iterations: a number, or the expression that computes it. */
            count: string;
            /** @description What lies between two iterations. */
            delay?: string | null;
            /**
             * Format: int32
             * @description Where it is written.
             */
            line: number;
            /** @description Its name. */
            name: string;
            /** @description What a reached limit does: `fail`, `continue`, `pause`. */
            on_limit: string;
            /** @description Maximum duration, in ISO 8601, or the expression that computes it. */
            timeout?: string | null;
            /** @description Maximum number of tokens of its actions: a number, or the expression that computes it. */
            tokens?: string | null;
            /** @description Its authored type. */
            type: string;
            /** @description How many iterations in a row may give the same, and what is compared. */
            unchanged?: string | null;
        };
        /** @description A loop that a run is in. */
        LoopReport: {
            /** @description What its actions used of the limits `tokens` and `cost`. */
            budgets?: components["schemas"]["BudgetReport"][];
            condition?: components["schemas"]["ConditionReport"] | null;
            deadline?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description The iteration that runs, or the last one that ended, from 1.
             */
            iteration: number;
            /**
             * Format: int64
             * @description How many have ended.
             */
            iterations_completed: number;
            last?: components["schemas"]["LastIteration"] | null;
            /**
             * Format: int64
             * @description How many may run.
             */
            max_iterations: number;
            /** @description Its name. */
            name: string;
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /** @description Its place in the run: `outer#2/inner`. */
            path: string;
            /** @description When it was entered. */
            started_at: components["schemas"]["Timestamp"];
            /** @description What people call it, where that is not the name. */
            title?: string | null;
            /** @description Its authored type. */
            type: string;
        };
        /** @description A loop or foreach of a run. */
        LoopSummary: {
            ended_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description How many iterations have ended.
             */
            iterations: number;
            /**
             * Format: int64
             * @description How many may run; the number of items of a foreach while it runs.
             */
            max_iterations?: number | null;
            /** @description Its name. */
            name: string;
            /** @description Its path. */
            path: string;
            /** @description When it was entered. */
            started_at: components["schemas"]["Timestamp"];
            /**
             * @description `running`, or how it ended: `condition`, `break`, `count`, `timeout`, `unchanged`, `tokens`, `cost`, `failed`,
             *     `cancelled` or `repeat`; of a foreach `ended` when it succeeded.
             */
            status: string;
            /** @description What people call it, where that is not the name. */
            title?: string | null;
            /** @description Its authored type. */
            type: string;
        };
        /** @description The loops of a run of which something is stored, the newest first; at most 1,000. */
        LoopsReport: {
            /** @description The loops. */
            loops: components["schemas"]["LoopSummary"][];
            /** @description The run. */
            run: string;
        };
        /** @description What the caller may do. */
        Me: {
            /** @description The role of its token: `view`, `operate` or `admin`. */
            access: string;
            /** @description The name of its token, or its Unix user. */
            name?: string | null;
        };
        /** @description A step, a scope, or the start or end of a scope. */
        Node: {
            /** @description The action that it is, where that has another name. */
            action?: string | null;
            /** @description The condition of a loop, or the items of a foreach, as written. */
            condition?: string | null;
            /**
             * Format: int32
             * @description The place of its file among those of the workflow, when that is not the first.
             */
            file?: number | null;
            /** @description Whether it has an inside. */
            foldable: boolean;
            /** @description Whether it is drawn open, with its inside in it. */
            frame: boolean;
            /**
             * Format: int64
             * @description How high it is.
             */
            height: number;
            /** @description Its id: the same in every graph of the same text, whatever is open. */
            id: string;
            /**
             * @description `loop`, `foreach`, `parallel`, `lane` (a branch of a parallel), `graph`, `if`, `switch`,
             *     `try`, `tried` (what a `try` catches the faults of), `block`; `action`, `set`, `compute`,
             *     `wait`, `signal`, `respond`, `raise`, `terminate`; `choice`, `start`, `end`, `break`.
             */
            kind: string;
            /** @description What bounds it. */
            limits?: components["schemas"]["NodeLimits"];
            /**
             * Format: int32
             * @description The line where it is written.
             */
            line?: number | null;
            /** @description What a status and a history call it. */
            name: string;
            /** @description The id of the frame that it is in. */
            parent?: string | null;
            /** @description Its path in a run, without numbers: the loops around it and its name. */
            path: string;
            /** @description The ports of a canvas that something is wired to. */
            ports?: components["schemas"]["Port"][];
            /** @description What it does, in one line. */
            summary?: string;
            /** @description What people call it, where that is not the name. */
            title?: string | null;
            /** @description Its type as written: `until`, `http`, … */
            type?: string | null;
            /**
             * Format: int64
             * @description How wide it is.
             */
            width: number;
            /**
             * Format: int64
             * @description Its left side.
             */
            x: number;
            /**
             * Format: int64
             * @description Its upper side.
             */
            y: number;
        };
        /** @description What bounds a node: numbers and durations, or the expressions that give them. */
        NodeLimits: {
            /**
             * Format: int32
             * @description How many items at a time.
             */
            concurrency?: number | null;
            /** @description How many iterations, or steps of a graph, at most. */
            count?: string | null;
            /** @description After how long it is cut. */
            deadline?: string | null;
            /** @description What lies between two iterations. */
            delay?: string | null;
            /** @description How it is retried, in words. */
            retry?: string | null;
            /** @description How long a loop at most. */
            timeout?: string | null;
        };
        /** @description A type of node. */
        NodeType: {
            /** @description What it does. */
            description: string;
            /** @description What it is called. */
            title: string;
            /** @description The type, as it is written. */
            type: string;
            /** @description The smallest right one, without its name. */
            value: Json;
        };
        /** @description An event and its place. */
        NumberedEvent: components["schemas"]["HistoryEvent"] & {
            /**
             * Format: int64
             * @description From 1.
             */
            sequence: number;
        };
        /** @description How a run ended. */
        OutcomeReport: {
            /** @description When. */
            at: components["schemas"]["Timestamp"];
            /** @description What its loops used of their limits `tokens` and `cost`. */
            budgets?: components["schemas"]["LoopBudget"][];
            error?: components["schemas"]["ErrorReport"] | null;
            /** @description The operations that were to be cancelled at its end, and whose servers refused that or did not answer. */
            failed_cancels?: components["schemas"]["FailedCancel"][];
            /** @description `on_failure` or `on_finish`, where it failed itself. */
            failed_endings?: components["schemas"]["FailedEnding"][];
            /** @description The foreaches that continued after failed items (`on_error: continue`). */
            failed_items?: components["schemas"]["FailedItems"][];
            /** @description The loops of a run that succeeded that ended at a limit all the same. */
            limits?: components["schemas"]["LimitReached"][];
            /** @description Its output. When it did not succeed: what a `Response` answered before, else null. */
            output: Json;
            /** @description Succeeded, Failed, TimedOut or Cancelled. */
            status: components["schemas"]["Status"];
            /** @description The files that it was to replace and did not, because it did not succeed. */
            unreplaced?: components["schemas"]["Unreplaced"][];
        };
        /** @description The panel of a node. */
        Panel: {
            /**
             * @description What can be done with it: `rename`, `delete`, `add_before`, `add_after`, `add_inside`, `connect`,
             *     `move`, `drill`.
             */
            actions: string[];
            /** @description The format. */
            format: string;
            /** @description Its type, as it is written. */
            kind: string;
            /** @description The node's path. */
            node: string;
            /** @description Where it is in the text: a JSON pointer. */
            pointer: string;
            /** @description Of a canvas: the ports of all nodes of its graph. */
            ports?: components["schemas"]["PortOf"][];
            /** @description Its fields. */
            sections: components["schemas"]["Section"][];
            /** @description What people call it. */
            title: string;
        };
        /** @description A node of a text. */
        PanelOf: {
            /** @description Reads it as this format. */
            dialect?: string | null;
            /** @description What its file is called. */
            file?: string | null;
            /** @description The files that it names. */
            files?: components["schemas"]["FileText"][];
            /** @description The node's path, as the graph has it, or its name. */
            node: string;
            /** @description The workflow's text. */
            text: string;
        };
        /** @description The parts of a condition. */
        Parts: {
            /** @description How they may be compared. */
            operator: components["schemas"]["Choice"][];
            /** @description The ports that may be compared, each with its type. */
            output: components["schemas"]["Choice"][];
            /** @description What a port of some types may be compared with. */
            value: components["schemas"]["Choice"][];
        };
        /** @description Why a run is paused. */
        PauseReport: {
            limit?: components["schemas"]["LoopEnd"] | null;
            /** @description The path of the loop that reached a limit. */
            loop?: string | null;
            /** @description `requested` or `limit`. */
            reason: string;
        };
        /** @description A pause. */
        PausedSince: components["schemas"]["PauseReport"] & {
            /** @description Since when. */
            since: components["schemas"]["Timestamp"];
        };
        /** @description A place that a run came to. */
        PlaceReport: {
            /** @description The value for `retry --from`: `poll#14` or `poll#14/fetch`. */
            path: string;
            /** @description `iteration` or `action`. */
            type: string;
        };
        /** @description Where a run can be retried from. */
        PlacesReport: {
            /** @description Whether steps from before these places are no longer stored one by one. */
            cut: boolean;
            /** @description The places, the newest first. */
            places: components["schemas"]["PlaceReport"][];
            /** @description The run. */
            run: string;
        };
        /** @description A port of a canvas's node. */
        Port: {
            /** @description Its name. */
            name: string;
            /** @description `in`, at the upper side, or `out`, at the lower side. */
            side: string;
            /**
             * Format: int64
             * @description Its place.
             */
            x: number;
            /**
             * Format: int64
             * @description Its place.
             */
            y: number;
        };
        /** @description A port that may be connected. */
        PortOf: {
            /** @description Its name. */
            name: string;
            /** @description The path of its node. */
            node: string;
            /** @description `in` or `out`. */
            side: string;
            /** @description Its type. */
            type: string;
        };
        /** @description A place in a text, as editors count. */
        Position: {
            /**
             * Format: int32
             * @description From 0, in UTF-16 code units.
             */
            character: number;
            /**
             * Format: int32
             * @description From 0.
             */
            line: number;
        };
        /** @description A line that a command printed. */
        PrintedLine: {
            /** @description The action. */
            action: string;
            /** @description Where: standard output or standard error. */
            stream: string;
            /** @description The line, without its end. */
            text: string;
        };
        /** @description What commands of a run that run now have printed. */
        PrintedReport: {
            /** @description Their last lines, of each command in order. */
            lines: components["schemas"]["PrintedLine"][];
        };
        /** @description Problem details (RFC 9457). */
        Problem: {
            current?: components["schemas"]["CurrentWorkflow"] | null;
            /** @description What is wrong this time. */
            detail: string;
            /** @description All mistakes of a workflow that is refused, with line and column. */
            diagnostics?: components["schemas"]["DiagnosticReport"][];
            state?: components["schemas"]["StateReport"] | null;
            /**
             * Format: int32
             * @description The HTTP status.
             */
            status: number;
            /** @description The kind of problem in a few words. */
            title: string;
            /** @description `urn:windlass:` and a word that stays the same: `unknown-run`, `refused-workflow`, … */
            type: string;
        };
        /** @enum {string} */
        Progress: "Running" | "Succeeded" | "Failed" | "Skipped" | "TimedOut" | "Cancelled";
        /** @description Which runs are forgotten: of those that have ended, the ones that everything here applies to. */
        PruneRuns: {
            /** @description Forgets nothing, and reports what it would forget. */
            dry_run?: boolean;
            /** @description Not the newest of each workflow, up to this many. */
            keep?: number | null;
            /** @description Only runs with all of these labels. */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description Only those that ended longer ago than this, as an ISO 8601 duration. This, `keep`, `labels`
             *     or `status` is needed.
             */
            older_than?: string | null;
            /** @description Only runs that ended so; `SucceededWithFailures`: those that succeeded although actions of them failed. */
            status?: string[];
            /** @description Only runs of this workflow. */
            workflow?: string | null;
        };
        /** @description What was forgotten. */
        Pruned: {
            /** @description Whether it was only looked. */
            dry_run: boolean;
            /**
             * Format: int64
             * @description How many programs no run needed any more.
             */
            programs: number;
            /** @description The runs. */
            runs: string[];
        };
        /** @description A question to people. */
        QuestionReport: {
            /** @description The choices; an answer has one of them as `choice`. */
            choices: string[];
            /** @description The other members of an answer. */
            fields: components["schemas"]["FormField"][];
            /** @description The JSON Schema of these members. */
            schema?: Record<string, Json> | null;
            /** @description The question itself. */
            title?: string | null;
        };
        /** @description A place in the line of the calls to a host, for its rate limit or because it is down. */
        RateLimitWait: {
            /** @description When the call begins, as far as that is known. */
            begins_at: components["schemas"]["Timestamp"];
            /**
             * Format: int32
             * @description How many calls to the host failed in a row, if it counts as down. Then one call at a time tries it.
             */
            failures?: number | null;
            /** @description The host and its port, or the name that the action has as `rate`. */
            host: string;
            /** @description The place, from 1. */
            position: number;
        };
        /** @description Something a condition reads. */
        Read: {
            /** @description A variable's name, or the part of the expression. */
            name: string;
            /** @description Its value. */
            value: Json;
        };
        /** @description Runs that continue. */
        Resumed: {
            /** @description Their ids. */
            runs: string[];
        };
        /** @description How a run is started again. */
        RetryRun: {
            /**
             * @description The action or iteration from which it continues, with its state at that time: `fetch`, `poll#14`,
             *     `poll#14/fetch`, or `failed`, the action that failed the run. None: its beginning.
             */
            from?: string | null;
            /** @description The new run's id, instead of one made from the workflow's name. */
            run?: string | null;
        };
        /** @description What a run is at. */
        RunDetail: {
            error?: components["schemas"]["ErrorReport"] | null;
            loop?: components["schemas"]["LoopCell"] | null;
            pause?: components["schemas"]["PausedSince"] | null;
            waits_for?: components["schemas"]["CurrentActivity"] | null;
        };
        /** @description One run in a list. */
        RunRow: components["schemas"]["RunSummary"] & components["schemas"]["RunDetail"];
        /** @description What a run does, in a word. */
        RunState: {
            /** @description The run. */
            run: string;
            /** @description What it is doing. */
            status: components["schemas"]["RunStatus"];
        };
        /** @enum {string} */
        RunStatus: "Running" | "Waiting" | "Paused" | "Succeeded" | "Failed" | "TimedOut" | "Cancelled";
        /** @description What `list` shows of a run. */
        RunSummary: {
            /**
             * Format: int64
             * @description How many commits it has.
             */
            commit: number;
            /**
             * Format: int64
             * @description How many of its actions failed without failing it: their failures were handled.
             */
            failed_actions?: number;
            /** @description What it was marked with. */
            labels: {
                [key: string]: string;
            };
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /** @description What it was compiled from, as a hash. */
            program: string;
            /** @description The run. */
            run: string;
            /** @description When it was started. */
            started_at: components["schemas"]["Timestamp"];
            /** @description What it is doing. */
            status: components["schemas"]["RunStatus"];
            /** @description When it last changed. */
            updated_at: components["schemas"]["Timestamp"];
            /** @description The workflow's name. */
            workflow: string;
        };
        /**
         * @description When runs of a workflow start automatically. Without a schedule it has only `next`, `missed_times`
         *     and `last`.
         */
        ScheduleReport: {
            /** @description The run of the last time that had one. */
            last?: string | null;
            last_missed?: components["schemas"]["Timestamp"] | null;
            /** @description Times while no server ran: `skip`, `run_once` or `run_all`. */
            missed?: string | null;
            /**
             * Format: int64
             * @description How many times were missed and have no run.
             */
            missed_times: number;
            /** @description The next five times; empty while it is paused. */
            next: components["schemas"]["Timestamp"][];
            /** @description While an earlier run has not ended: `skip`, `queue`, `allow` or `replace`. */
            overlap?: string | null;
            paused_since?: components["schemas"]["Timestamp"] | null;
            /** @description A cron pattern, or a recurrence in words. */
            schedule?: string | null;
            /** @description The time zone; UTC where none is named. */
            timezone?: string | null;
        };
        /** @description A time of a schedule in the past. */
        ScheduledTime: {
            /** @description The id of its run. */
            run: string;
            status?: components["schemas"]["RunStatus"] | null;
            time: components["schemas"]["Timestamp"];
        };
        /** @description Times of a schedule in the past. */
        ScheduledTimes: {
            times: components["schemas"]["ScheduledTime"][];
        };
        /** @description Fields that belong together. */
        Section: {
            /** @description The fields. */
            fields: components["schemas"]["Field"][];
            /** @description What they are called. */
            title: string;
        };
        /** @description A signal. */
        Signal: {
            /** @description An id that the sender makes, for one that may be sent again: of several with the same id, the run receives one. */
            id?: string | null;
            /** @description Its name. */
            name: string;
            /** @description What it carries. */
            payload?: Json;
            /**
             * Format: int64
             * @description Of one that answers the wait that a report shows: `received` there. When that wait is over, the signal is
             *     refused; without this, it is stored for the next wait.
             */
            received?: number | null;
        };
        /** @description The files of a run, as they were when it was started. */
        SourceReport: {
            /** @description The format it is read as. */
            dialect: string;
            /** @description Its files: the workflow first, then those that it names. */
            files: components["schemas"]["FileReport"][];
            /** @description What it is compiled from, as a hash. */
            program: string;
            /** @description The run. */
            run: string;
        };
        /** @description A run to start: of a stored workflow, or of one in the request. */
        StartRun: {
            /** @description Reads the text as this format: `loom`, `azure`, `tea`, `canvas`. */
            dialect?: string | null;
            /** @description What the text's file is called, for diagnostics. */
            file?: string | null;
            /** @description The files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description The input. */
            input?: Json;
            /** @description What the run is marked with. */
            labels?: {
                [key: string]: string;
            };
            /** @description The run's id, instead of one made from the workflow's name. */
            run?: string | null;
            scheduled_time?: components["schemas"]["Timestamp"] | null;
            /**
             * @description What answers for handlers, connectors and actions of the text that nothing here answers, as
             *     `POST /v1/language/stubs` makes it. It is not stored: a run that a restart interrupts lacks it.
             */
            stubs?: Record<string, Json> | null;
            /** @description The text of a workflow, YAML or JSON, instead of a name. */
            text?: string | null;
            /** @description The name of a stored workflow. */
            workflow?: string | null;
        };
        StartRunOrWorkflow: components["schemas"]["StartRun"] | {
            [key: string]: Json;
        };
        /** @description Values that workflows have between their runs. */
        StateList: {
            /** @description The values, by workflow and name. */
            values: components["schemas"]["StateReport"][];
        };
        /** @description A value of a workflow between its runs. */
        StateReport: {
            /** @description Whether it belongs to workflows that arrived over TCP. */
            guest: boolean;
            /** @description The idempotency key of the action that wrote it. */
            key?: string | null;
            /** @description The name of the value. */
            name: string;
            /** @description The run that wrote it; without one a person did. */
            run?: string | null;
            value: Json;
            /**
             * Format: int64
             * @description How often it was written.
             */
            version: number;
            /** @description The name of the workflow: its own, as runs have it. */
            workflow: string;
            /** @description When it was written. */
            written_at: components["schemas"]["Timestamp"];
        };
        /** @description A value that a workflow gets between its runs. */
        StateValue: {
            /** @description Only if it has this value. */
            expect?: Json;
            /**
             * Format: int64
             * @description Only if it has this version; 0: only if it was never written.
             */
            if_version?: number | null;
            /** @description What it is then. */
            value: Json;
        };
        /** @enum {string} */
        Status: "Succeeded" | "Failed" | "Skipped" | "TimedOut" | "Cancelled";
        /** @description Everything `status` shows of one run. */
        StatusReport: {
            /** @description When this was made. */
            at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description How many commits it has; all of them are durable.
             */
            commit: number;
            /** @description The format of the file. */
            dialect?: string | null;
            /** @description What each of its branches does right now. */
            doing: components["schemas"]["CurrentActivity"][];
            /**
             * Format: int64
             * @description How many of its actions failed without failing it: their failures were handled.
             */
            failed_actions?: number;
            /** @description The workflow file as it was named. */
            file?: string | null;
            /** @description The foreaches, parallels and DAGs it is in, outermost first. */
            forks: components["schemas"]["ForkReport"][];
            /** @description What it was marked with. */
            labels: {
                [key: string]: string;
            };
            /** @description The loops it is in, outermost first. */
            loops: components["schemas"]["LoopReport"][];
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /** @description Why the store accepts no writes. Until it does, no run continues; it is tried again automatically. */
            outage?: string | null;
            outcome?: components["schemas"]["OutcomeReport"] | null;
            /** @description Whether a process executes it: one that owns the store, and that started, resumed or recovered the run. */
            owned: boolean;
            pause?: components["schemas"]["PausedSince"] | null;
            /** @description What it was compiled from, as a hash. */
            program: string;
            /** @description The run. */
            run: string;
            /** @description When it was started. */
            started_at: components["schemas"]["Timestamp"];
            /** @description Whether it starts runs of other workflows. They have the label `windlass.parent` with its id. */
            starts_runs?: boolean;
            /** @description What it is doing. */
            status: components["schemas"]["RunStatus"];
            /** @description When its last commit was made. */
            updated_at: components["schemas"]["Timestamp"];
            /** @description The workflow's name. */
            workflow: string;
        };
        /**
         * @description Why a run does not continue until it is resumed.
         * @enum {string}
         */
        Stop: "paused" | "parked" | "left";
        /**
         * @description How much of an iteration is stored.
         * @enum {string}
         */
        StoredDetail: "whole" | "row" | "summary";
        /** @description Iterations that are shown as one. */
        StripCell: components["schemas"]["Totals"] & {
            /** @description What the condition gave, of a single iteration. */
            condition?: boolean | null;
            /**
             * Format: int64
             * @description The first of them.
             */
            from: number;
            /**
             * Format: int64
             * @description The longest.
             */
            max_ms?: number | null;
            /**
             * Format: int64
             * @description The mean.
             */
            mean_ms?: number | null;
            /**
             * Format: int64
             * @description The shortest, in milliseconds; absent if none is stored.
             */
            min_ms?: number | null;
            /**
             * Format: int64
             * @description The one behind the last.
             */
            to: number;
        };
        /** @description How the iterations of a loop ended. */
        StripReport: {
            /** @description What its actions used of the limits `tokens` and `cost`. */
            budgets?: components["schemas"]["BudgetReport"][];
            /** @description The same in parts. */
            cells: components["schemas"]["StripCell"][];
            /** @description Whether each cell is one iteration. */
            exact: boolean;
            /** @description The first 1,000 that failed or were out of time. */
            failed: number[];
            /** @description Whether there are more of those. */
            failed_more: boolean;
            /**
             * Format: int64
             * @description The number of iterations of which nothing is stored.
             */
            forgotten: number;
            /**
             * Format: int64
             * @description The first iteration that is shown, from 0.
             */
            from: number;
            /**
             * Format: int64
             * @description How many iterations have ended.
             */
            iterations: number;
            /** @description The loop's path. */
            loop: string;
            /**
             * Format: int64
             * @description How many may run; the number of items of a foreach while it runs.
             */
            max_iterations?: number | null;
            /** @description The messages of those, and of those that succeeded with failures, the most frequent first; 20 at most. */
            messages: components["schemas"]["FailureCount"][];
            /** @description The run. */
            run: string;
            /** @description Whether one is running. */
            running: boolean;
            /** @description What people call it, where that is not its name. */
            title?: string | null;
            /**
             * Format: int64
             * @description The one behind the last.
             */
            to: number;
            /** @description How they ended. */
            totals: components["schemas"]["Totals"];
            /** @description Its authored type. */
            type: string;
        };
        /** @description Stubs for what a text needs and nothing here answers. */
        Stubs: {
            /** @description By action what answers for it, and the values that a definition needs. */
            stubs: Record<string, Json>;
            /** @description The same as the text of a file, as `validate --write-stubs` writes it. */
            text: string;
        };
        /** @description An action or node of a text. */
        Symbol: {
            /** @description Those inside of it. */
            children: components["schemas"]["Symbol"][];
            /** @description The kind of its node in a graph: `action`, `loop`, `foreach`, `if`, … */
            kind: string;
            /** @description Its name. */
            name: string;
            /** @description The path of its node in a graph. */
            path: string;
            /** @description All of it. */
            range: components["schemas"]["TextRange"];
            /** @description Its name. */
            selection: components["schemas"]["TextRange"];
            /** @description Its type as written. */
            type: string;
        };
        /** @description The actions and nodes of a text. */
        Symbols: {
            /** @description Those at the top; the others are in them. */
            symbols: components["schemas"]["Symbol"][];
        };
        /** @description A condition for a loop of a run. */
        TestOf: {
            /** @description The condition as its format writes it: a text, or an object. */
            condition: Json;
            /** @description The loop's path: `poll`, `outer#2/inner`. */
            loop: string;
            /** @description What ends the loop; without it, as the loop's type has it. */
            stops_when?: boolean | null;
        };
        /** @description What a condition says in an iteration. */
        TestedIteration: {
            /**
             * Format: int64
             * @description Its number, from 0.
             */
            iteration: number;
            /** @description What it says; none where it fails. */
            value?: boolean | null;
            /** @description What it reads. */
            values: {
                [key: string]: Json;
            };
        };
        /** @description A part of a text that is replaced. */
        TextEdit: {
            /** @description The new text. */
            new_text: string;
            /** @description What is replaced. */
            range: components["schemas"]["TextRange"];
        };
        /** @description A place of a text. */
        TextPlace: {
            /** @description The place. */
            at: components["schemas"]["Position"];
            /** @description Reads it as this format: `loom`, `azure`, `tea`, `canvas`. */
            dialect?: string | null;
            /** @description What its file is called. */
            file?: string | null;
            /** @description The files that it names. */
            files?: components["schemas"]["FileText"][];
            /** @description One of its iterations: `outer#2/inner#7`. */
            iteration?: string | null;
            /** @description A run whose values are shown. Only for hovers, with `iteration`. */
            run?: string | null;
            /** @description The text of a workflow, YAML or JSON; it may be wrong. */
            text: string;
        };
        /** @description From one place to another. */
        TextRange: {
            /** @description The place behind it. */
            end: components["schemas"]["Position"];
            /** @description Where it begins. */
            start: components["schemas"]["Position"];
        };
        /** Format: date-time */
        Timestamp: string;
        /** @description How iterations ended. */
        Totals: {
            /**
             * Format: int64
             * @description They were cancelled.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description They did not.
             */
            failed: number;
            /**
             * Format: int64
             * @description Of all of these, those in which an action took more than one attempt.
             */
            retried: number;
            /**
             * Format: int64
             * @description Their turn never came.
             */
            skipped: number;
            /**
             * Format: int64
             * @description They did what they should.
             */
            succeeded: number;
            /**
             * Format: int64
             * @description Of these, those in which an action failed and that was handled.
             */
            succeeded_with_failures: number;
            /**
             * Format: int64
             * @description A deadline cut them.
             */
            timed_out: number;
        };
        /** @description What an action would do. */
        Tried: {
            /** @description Why it fails. */
            error?: string | null;
            /** @description The request that would be sent: `executor` and `inputs`. Secrets are masked. */
            request?: Json;
            /** @description The result of an action that sends nothing. */
            result?: Json;
        };
        /** @description An action of a text, and what it reads. */
        TryOf: {
            /** @description Reads it as this format. */
            dialect?: string | null;
            /** @description What its file is called. */
            file?: string | null;
            /** @description The files that it names. */
            files?: components["schemas"]["FileText"][];
            /** @description Inputs of the run. */
            inputs?: Record<string, Json> | null;
            /** @description One of its iterations: `outer#2/inner#7`. */
            iteration?: string | null;
            /** @description The action's path, as the graph has it, or its name. */
            node: string;
            /** @description What other actions gave, by name. */
            outputs?: Record<string, Json> | null;
            /** @description A run whose values it reads, with `iteration`. */
            run?: string | null;
            /** @description The workflow's text. */
            text: string;
            /** @description Variables. */
            variables?: Record<string, Json> | null;
        };
        /** @description The types of nodes of a format. */
        Types: {
            /** @description What can be added. */
            types: components["schemas"]["NodeType"][];
        };
        /** @description A format. */
        TypesOf: {
            /** @description `loom`, `azure`, `tea` or `canvas`. */
            dialect: string;
        };
        /** @description A file that a run was to replace, and did not. */
        Unreplaced: {
            /** @description The file. */
            file: string;
            /** @description Where the new rows are. */
            new: string;
        };
        /** @description The result of a check of a workflow. */
        Validation: {
            /** @description All mistakes, and what only looks wrong. */
            diagnostics: components["schemas"]["DiagnosticReport"][];
            /** @description The format that it is read as; none where that cannot be determined. */
            dialect?: string | null;
            graph?: components["schemas"]["Graph"] | null;
            /** @description Its inputs, if it is valid. */
            inputs: components["schemas"]["InputReport"][];
            /** @description What bounds its loops. */
            loops: components["schemas"]["LoopLimits"][];
            /** @description Whether it would be taken. */
            valid: boolean;
        };
        /** @description A version of a stored workflow. */
        VersionReport: {
            /** @description Whether it is the one that is started now. */
            current: boolean;
            /** @description How many of its runs do what. */
            runs: {
                [key: string]: number;
            };
            /** @description When it was put there. */
            stored_at: components["schemas"]["Timestamp"];
            /** @description What it is compiled from, as a hash. */
            version: string;
        };
        /** @description The versions of a stored workflow. */
        VersionsReport: {
            /** @description The newest first: the current one, and at least the 50 before it. */
            versions: components["schemas"]["VersionReport"][];
        };
        /** @description A time in which nothing was done. */
        WaitReport: {
            /** @description Since when. */
            from: components["schemas"]["Timestamp"];
            /** @description `delay` before the iteration, `retry` between two attempts, or `sleep`. */
            kind: string;
            /** @description Until when. */
            to: components["schemas"]["Timestamp"];
        };
        /**
         * @description Where a node is added.
         * @enum {string}
         */
        Where: "before" | "after" | "inside";
        /** @description A page of workflows. */
        WorkflowList: {
            /** @description Where the next page begins, when there may be more. */
            next?: string | null;
            /** @description The workflows, by name. */
            workflows: components["schemas"]["WorkflowSummary"][];
        };
        /** @description A workflow, its inputs, and the limits of its loops. */
        WorkflowReport: {
            /** @description The format it is read as. */
            dialect: string;
            /** @description Its files: the workflow first, then those that it names. */
            files: components["schemas"]["FileReport"][];
            /** @description Its inputs. */
            inputs: components["schemas"]["InputReport"][];
            /** @description What bounds its loops. */
            loops: components["schemas"]["LoopLimits"][];
            /** @description The name under which it is stored. */
            name: string;
            /** @description What it is compiled from, as a hash. */
            program: string;
            /** @description When it was put there. */
            stored_at: components["schemas"]["Timestamp"];
            /** @description The name that its file declares, else one from the file's path. */
            title: string;
            /** @description What looks wrong in it, though it runs. */
            warnings: components["schemas"]["DiagnosticReport"][];
        };
        /** @description One workflow in a list. */
        WorkflowSummary: {
            /** @description The format it is read as. */
            dialect: string;
            /** @description Its file, as it was named. */
            file: string;
            /** @description The name under which it is stored. */
            name: string;
            /** @description When it was put there. */
            stored_at: components["schemas"]["Timestamp"];
        };
        /** @description A workflow in the request. */
        WorkflowText: {
            /** @description Reads it as this format: `loom`, `azure`, `tea`, `canvas`. */
            dialect?: string | null;
            /** @description What its file is called, for diagnostics. */
            file?: string | null;
            /** @description The files that it names. */
            files?: components["schemas"]["FileText"][];
            /** @description Its text, YAML or JSON. */
            text: string;
        };
        WorkflowTextOrWorkflow: components["schemas"]["WorkflowText"] | {
            [key: string]: Json;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process answers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    get_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                    "text/plain": string;
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_readiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server accepts work */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description It is starting or stopping, its runs do not move, or its disk is full or fails */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_audit: {
        parameters: {
            query?: {
                /** @description Only those of this token or Unix user. */
                name?: string;
                /** @description Only this command: `start`, `pause`, `put-workflow`, … */
                action?: string;
                /** @description Only those about this run, workflow, or WORKFLOW/NAME of a value. */
                target?: string;
                /** @description Only those at this instant (RFC 3339) or later. */
                since?: components["schemas"]["Timestamp"];
                /** @description Maximum number: 100 by default, 10000 at most. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest entries, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditReport"];
                };
            };
            /** @description A parameter cannot be read, or the token has another role */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_callback: {
        parameters: {
            query: {
                /** @description How many signals of the name the run had received, or stopped to wait for, when the address was made. */
                received: number;
                /** @description Until when it is valid, in milliseconds since 1970. */
                expires: number;
                signature: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
                /** @description The signal */
                signal: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The question, without its title while the run does not wait for the signal */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuestionReport"];
                };
            };
            /** @description 403 another signature, 404 unknown run, 409 it is answered, 410 the address has expired */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    answer_callback: {
        parameters: {
            query: {
                /** @description How many signals of the name the run had received, or stopped to wait for, when the address was made. */
                received: number;
                /** @description Until when it is valid, in milliseconds since 1970. */
                expires: number;
                signature: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
                /** @description The signal */
                signal: string;
            };
            cookie?: never;
        };
        /** @description What the signal carries */
        requestBody?: {
            content: {
                "application/json": Record<string, unknown> | null;
            };
        };
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description 403 another signature, 404 unknown run, 409 it is answered or has ended, 410 the address has expired, 422 the question does not accept it */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    dump_all: {
        parameters: {
            query?: {
                /** @description Number of the last iterations of each run: 5 by default, at most 10000. */
                iterations?: number;
                /** @description Maximum number of runs: 20 by default, at most 200. */
                limit?: number;
                /** @description Only runs behind this one: the last of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of checkpoints */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description A parameter cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_live: {
        parameters: {
            query?: {
                /**
                 * @description These runs, with their statuses; several with commas between them, 200 at most. `*`, or none:
                 *     all runs, as a list shows them. `*,RUN`: both.
                 */
                runs?: string;
                /** @description Maximum number of updates a second: 10 by default, from 0.1 to 60. */
                max_hz?: number;
                /** @description The last event that is known, where no `Last-Event-ID` can be sent. */
                after?: string;
            };
            header?: {
                /** @description The last event that is known */
                "Last-Event-ID"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description A parameter cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    start_by_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The saved workflow */
                workflow: string;
            };
            cookie?: never;
        };
        /** @description What the run gets as `body` */
        requestBody?: {
            content: {
                "application/json": Record<string, unknown> | null;
            };
        };
        responses: {
            /** @description The same delivery started it before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookStart"];
                };
            };
            /** @description The run was started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookStart"];
                };
            };
            /** @description 401 another signature, 404 no workflow with a webhook, 422 refused input */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    complete: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TextPlace"];
            };
        };
        responses: {
            /** @description Possible completions */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Completion"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    edit_text: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditText"];
            };
        };
        responses: {
            /** @description The text, and what changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Edited"];
                };
            };
            /** @description 422: it cannot be done, or the workflow would be refused then */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    hover: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TextPlace"];
            };
        };
        responses: {
            /** @description What there is to say; null for nothing */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Hover"] | null;
                };
            };
            /** @description Unknown run or iteration */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_panel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PanelOf"];
            };
        };
        responses: {
            /** @description The panel */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Panel"];
                };
            };
            /** @description 422: unknown node, or the text is invalid */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkflowTextOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description Its schedule, with the next five times */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleReport"];
                };
            };
            /** @description 422: the workflow is refused */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_stubs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkflowTextOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description The stubs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stubs"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    symbols: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkflowTextOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description What is in the text */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Symbols"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    try_action: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TryOf"];
            };
        };
        responses: {
            /** @description What it would do */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tried"];
                };
            };
            /** @description 422: unknown action, or the text is invalid */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_types: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TypesOf"];
            };
        };
        responses: {
            /** @description The types */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Types"];
                };
            };
            /** @description Unknown format */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What its token or its session allows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    prune_runs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PruneRuns"];
            };
        };
        responses: {
            /** @description The deleted runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pruned"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_all: {
        parameters: {
            query?: {
                /** @description The paused ones too. */
                paused?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They continue */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Resumed"];
                };
            };
            /** @description A parameter cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description The server is not ready, or the store cannot be read */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_runs: {
        parameters: {
            query?: {
                /**
                 * @description Only runs that do this; several with commas between them: Running, Waiting, Paused,
                 *     Succeeded, SucceededWithFailures (of those that succeeded, those of which actions failed), Failed, TimedOut, Cancelled.
                 */
                status?: string;
                /** @description Only runs of this workflow; several with commas between them. */
                workflow?: string;
                /** @description Only runs whose ids begin so. */
                prefix?: string;
                /** @description Only runs with these labels: NAME=TEXT; several with commas between them. */
                label?: string;
                /** @description Only runs with this in their id, their workflow or a label, in whatever case. */
                text?: string;
                /** @description Only runs that were started at this instant (RFC 3339) or later. */
                since?: components["schemas"]["Timestamp"];
                /** @description Only runs that were started before this instant (RFC 3339). */
                until?: components["schemas"]["Timestamp"];
                /** @description Only runs that should progress but have not since this instant (RFC 3339). */
                stuck_since?: components["schemas"]["Timestamp"];
                /** @description Only these runs; several with commas between them, 200 at most. */
                runs?: string;
                /** @description Whether the runs are counted by status, by workflow and by hour too. */
                facets?: boolean;
                /** @description Whether the current activity of each run is included: its loop, what it waits for, why it failed. */
                detail?: boolean;
                /** @description Number of the newest runs to skip. */
                offset?: number;
                /** @description Maximum number of runs: 50 by default, at most 1000. */
                limit?: number;
                /** @description Where the page begins: `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListReport"];
                };
            };
            /** @description A parameter cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    start_run: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key of the caller's, of a workflow: the same key is the same run */
                "Idempotency-Key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StartRunOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description The same request started it before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummary"];
                };
            };
            /** @description The run was started */
            201: {
                headers: {
                    /** @description The run */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummary"];
                };
            };
            /** @description It was not started: 404 unknown workflow, 409 the id is taken, 422 refused workflow or input, 429 the queue is full */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description It may have been started: repeat it with the same key */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    bulk_runs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRuns"];
            };
        };
        responses: {
            /** @description What was done, and what was not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkReport"];
                };
            };
            /** @description The request cannot be read, or has too many runs */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description The server is not ready */
            "5XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its loops, what they read, what it waits for */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description 404 unknown run, 409 it has ended */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_difference: {
        parameters: {
            query: {
                /** @description The one: `poll#13`. */
                from: string;
                /** @description The other: `poll#14`. */
                to: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where they differ */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DifferenceReport"];
                };
            };
            /** @description 404 unknown run or iteration, 400 unknown loop */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_dump: {
        parameters: {
            query?: {
                /** @description Number of the last iterations: 5 by default, at most 10000. */
                iterations?: number;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The checkpoint */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_events: {
        parameters: {
            query?: {
                /** @description The last event that is known, where no `Last-Event-ID` can be sent; 0, or none: all events. */
                after?: string;
                /** @description `false`: only what it does, not what it did. */
                history?: boolean;
            };
            header?: {
                /** @description The last event that the client received */
                "Last-Event-ID"?: string | null;
            };
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description The run has ended and every event was sent */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run in one document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExportReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_graph: {
        parameters: {
            query?: {
                /**
                 * @description Which scopes are drawn with their inside: `all`, `none`, or ids or paths of nodes with commas
                 *     between them.
                 */
                open?: string;
                /** @description Only the inside of the node with this id or path. */
                root?: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Nodes and edges with their places */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            /** @description A requested node does not exist, or has no inside */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_history: {
        parameters: {
            query?: {
                /** @description Only the loop with this path, such as `outer#2/inner`. */
                loop?: string;
                /** @description Number of the last iterations: 100 by default, at most 10000. */
                iterations?: number;
                /** @description Whether events are included. */
                events?: boolean;
                /** @description Only events after this one. */
                after?: number;
                /** @description Maximum number of events: 100 by default, at most 10000. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its iterations and events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_iteration: {
        parameters: {
            query?: {
                /** @description The iteration: `poll#14`, `outer#2/inner#7`. Without it, what the run did outside of its loops. */
                path?: string;
                /**
                 * @description Only this value of it, all of it: a JSON pointer such as `/result`, `/variables/rows` or
                 *     `/actions/0/outputs`.
                 */
                pointer?: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The iteration, as far as it is stored */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IterationReport"];
                };
            };
            /** @description 404 unknown run or iteration, 400 unknown loop */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_iterations: {
        parameters: {
            query: {
                /** @description The path of the loop or foreach: `poll`, `outer#2/inner`. */
                loop: string;
                /** @description The first iteration, from 0. */
                from?: number;
                /** @description The iteration behind the last. */
                to?: number;
                /**
                 * @description Only those that ended so; several with commas between them: Succeeded, Failed, TimedOut,
                 *     Cancelled, Skipped, SucceededWithFailures: of those that Succeeded, those in which an action failed.
                 */
                status?: string;
                /**
                 * @description Only those with another value there than the iteration before: a JSON pointer into the result,
                 *     such as `/check/body/state`; empty: any other result.
                 */
                changed?: string;
                /** @description Only those with this in their result or error, in whatever case. */
                text?: string;
                /** @description Maximum number of entries: 100 by default, at most 1000. */
                limit?: number;
                /** @description `asc`, the oldest first, or `desc`. */
                order?: string;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of iterations */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IterationsReport"];
                };
            };
            /** @description 404 unknown run, 400 unknown loop */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_loops: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Loops with stored iterations, at most 1000 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoopsReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pause_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description 404 unknown run, 409 it has ended */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_places: {
        parameters: {
            query?: {
                /** @description Maximum number of entries: 100 by default, at most 10000. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The places */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlacesReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_printed: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrintedReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_result: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the run's end, at most 60. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run has ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OutcomeReport"];
                };
            };
            /** @description The run has not ended */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description 404 unknown run, 409 it has ended */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    retry_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetryRun"] | null;
            };
        };
        responses: {
            /** @description The new run was started */
            201: {
                headers: {
                    /** @description The new run */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunSummary"];
                };
            };
            /** @description 404 unknown run, 409 it did not end badly, or was not at the place */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    signal_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Signal"];
            };
        };
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunState"];
                };
            };
            /** @description 404 unknown run, 409 it has ended, or nothing in its workflow waits for a signal of this name, 422 the question does not accept the payload */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_source: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its files: the workflow first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SourceReport"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_strip: {
        parameters: {
            query: {
                /** @description The path of the loop or foreach: `poll`, `outer#2/inner`. */
                loop: string;
                /** @description The first iteration, from 0; the first one when it is left out. */
                from?: number;
                /** @description The iteration behind the last; the end when it is left out. */
                to?: number;
                /**
                 * @description Maximum number of cells: 400 by default, at most 10000. If there are no more iterations than
                 *     cells, each has its own.
                 */
                buckets?: number;
            };
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Counts and durations, in cells that add up to the whole */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StripReport"];
                };
            };
            /** @description 404 unknown run, 400 unknown loop */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    test_condition: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestOf"];
            };
        };
        responses: {
            /** @description Its value in each iteration */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConditionTest"];
                };
            };
            /** @description Unknown run */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Unknown loop, or the condition is invalid */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    begin_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["BeginSession"] | null;
            };
        };
        responses: {
            /** @description The cookie is set; a server without a token needs none */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description No token, or a ticket that was used or is too old */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    end_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session has ended */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_state: {
        parameters: {
            query?: {
                /** @description Only those of this workflow. */
                workflow?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The stored values */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateList"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_state: {
        parameters: {
            query?: {
                /** @description Whether it is that of workflows that arrived over TCP, which have values of their own. */
                guest?: boolean;
                /** @description For DELETE: only if it has this version. */
                if_version?: number;
            };
            header?: never;
            path: {
                /** @description The name of the workflow, as its runs have it */
                workflow: string;
                /** @description The name of the value */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The value */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateReport"];
                };
            };
            /** @description It was never written, or was deleted */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_state: {
        parameters: {
            query?: {
                /** @description Whether it is that of workflows that arrived over TCP, which have values of their own. */
                guest?: boolean;
                /** @description For DELETE: only if it has this version. */
                if_version?: number;
            };
            header?: never;
            path: {
                /** @description The name of the workflow, as its runs have it */
                workflow: string;
                /** @description The name of the value */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StateValue"];
            };
        };
        responses: {
            /** @description It is durable */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StateReport"];
                };
            };
            /** @description 412: it has another version or value, see `state`; 422: it is too large */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    remove_state: {
        parameters: {
            query?: {
                /** @description Whether it is that of workflows that arrived over TCP, which have values of their own. */
                guest?: boolean;
                /** @description For DELETE: only if it has this version. */
                if_version?: number;
            };
            header?: never;
            path: {
                /** @description The name of the workflow, as its runs have it */
                workflow: string;
                /** @description The name of the value */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description 404: it was never written, or was deleted; 412: it has another version, see `state` */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    validate_workflow: {
        parameters: {
            query?: {
                /** @description Whether its graph is given too. */
                graph?: boolean;
                /**
                 * @description Which scopes of the graph are drawn with their inside: `all`, `none`, or ids or paths of
                 *     nodes with commas between them.
                 */
                open?: string;
                /** @description Only the inside of the node with this id or path. */
                root?: string;
                /** @description Whether it is checked with the rights of a guest, even if the caller has more. */
                guest?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkflowTextOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description What is wrong with it, if anything */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Validation"];
                };
            };
            /** @description The request cannot be read */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_workflows: {
        parameters: {
            query?: {
                /** @description Maximum number of workflows: 100 by default, at most 1000. */
                limit?: number;
                /** @description Where the page begins: `next` of the page before. */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workflows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowList"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_workflow: {
        parameters: {
            query?: {
                /** @description A former version instead of the current one: its hash, or at least the first six digits of it. */
                version?: string;
            };
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow */
            200: {
                headers: {
                    /** @description Its version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowReport"];
                };
            };
            /** @description Unknown workflow or version */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    put_workflow: {
        parameters: {
            query?: never;
            header?: {
                /** @description Only if this is the current version, as in `ETag` */
                "If-Match"?: string | null;
                /** @description `*`: only if the name is unused */
                "If-None-Match"?: string | null;
            };
            path: {
                /** @description Its name: letters, digits and -_. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WorkflowTextOrWorkflow"];
                "application/yaml": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description Saved; it replaced an earlier version */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowReport"];
                };
            };
            /** @description Saved */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowReport"];
                };
            };
            /** @description 422: invalid, with all diagnostics; 412: another version is current, see `current` */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    remove_workflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Unknown workflow */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_workflow_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its schedule, with the next five times */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleReport"];
                };
            };
            /** @description Unknown workflow */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pause_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is paused */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleReport"];
                };
            };
            /** @description 404: unknown workflow; 422: it has no schedule */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It starts runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleReport"];
                };
            };
            /** @description 404: unknown workflow; 422: it has no schedule */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_scheduled_times: {
        parameters: {
            query: {
                /** @description From this instant (RFC 3339), or from the beginning of this day on the clock of the schedule. */
                from: string;
                /** @description To before this one: now when it is left out. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The times, in order */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduledTimes"];
                };
            };
            /** @description 404: unknown workflow; 422: it has no schedule, or the range is wrong */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    get_workflow_versions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its versions */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionsReport"];
                };
            };
            /** @description Unknown workflow */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description 400 a parameter that cannot be used, 401 no token, 403 not allowed */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
