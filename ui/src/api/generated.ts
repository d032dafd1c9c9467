// Generated from docs/openapi.json by `npm run types`. Do not edit.

/** Any value: the description leaves its type open. A bigint is an integer that a number does not hold (see json.ts). */
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check that the process answers. */
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
         * Get the metrics of the server.
         * @description The format is OpenMetrics if the header `Accept` requests it, else the text format of Prometheus.
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
         * Check that the server accepts work.
         * @description It does if earlier runs have been recovered, runs progress, its store accepts writes, and it is not stopping.
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
        /**
         * List the entries of the audit log, newest first.
         * @description Each entry is a command of a client, with its name and address. Needs the role `admin`.
         */
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
        /**
         * Show the question that a callback address answers.
         * @description A browser receives a page with a form, other clients receive JSON. The address is made by `callbackUrl` in a
         *     workflow, and needs no token.
         */
        get: operations["get_callback"];
        put?: never;
        /**
         * Answer a signal with a callback address.
         * @description The body is the payload as JSON, or the form of the page. The address is made by `callbackUrl` in a workflow, and
         *     needs no token.
         */
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
         * Get the checkpoints of all runs in pages, as stored.
         * @description Runs are sorted by id. The schema is `docs/dump.schema.json`. A page without runs means that the page before was the
         *     last.
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
         * Stream the latest states of changed runs as server-sent events.
         * @description A run is sent at most `max_hz` times per second, not at every step. Events: `hello` (`Hello`; the first event, sent
         *     again when the store fails or works again), `rows` (an array of `RunRow`: changed runs, as a list with `detail=true`
         *     has them), `run` (`RunRow`: one of the runs in `runs`), `status` (`StatusReport`: its status), `gone` (an array of
         *     ids of deleted runs). A client that reconnects with the last id receives what changed meanwhile.
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
        /**
         * Start a run of a stored workflow that has a webhook.
         * @description The request needs no token, but a signature in the form that the workflow defines.
         */
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
        /**
         * List the completions at a position of a text.
         * @description They are keys, values, and in expressions names, functions and members.
         */
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
        /**
         * Edit a text.
         * @description Comments, layout and quotes of the other parts stay unchanged. Nothing is stored.
         */
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
        /**
         * Describe a position of a text.
         * @description With `run` and `iteration`, the response also has the value that an expression had in that iteration.
         */
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
        /** Get the panel of a node: its fields, for a generic form. */
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
        /**
         * Get the schedule of a text, with its next times.
         * @description The body is the same as for `POST /v1/validate`.
         */
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
         * Get stubs for a text.
         * @description They have a placeholder answer for each action that needs one. The body is the same as for `POST /v1/validate`.
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
        /**
         * List the actions and nodes of a text as a tree.
         * @description The body is the same as for `POST /v1/validate`.
         */
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
        /**
         * Try one action of a text without sending anything.
         * @description The response has the request that the action would send, or its result.
         */
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
        /** List the types of nodes that can be added to a text of a format. */
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
        /** Get the role and the name of the caller. */
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
        /**
         * Delete ended runs.
         * @description Other runs continue meanwhile.
         */
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
        /**
         * Resume all runs that have not ended.
         * @description Paused runs stay paused unless `paused` is true.
         */
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
        /** List the runs, newest first. */
        get: operations["list_runs"];
        put?: never;
        /**
         * Start a run.
         * @description When the response is sent, the first step of the run is durable. With an `Idempotency-Key`, the request can be
         *     repeated: a repetition returns the same run with status 200.
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
         * Pause, resume, cancel or retry many runs.
         * @description Each run succeeds or fails on its own, and a failure has a reason. The response is sent when all changes are
         *     durable.
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
        /**
         * Get the status of a run.
         * @description It has the loops of the run, what their conditions read, and what the run waits for.
         */
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
        /**
         * Cancel a run.
         * @description Effects in flight are aborted.
         */
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
        /** Compare two iterations of a run. */
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
        /**
         * Get the checkpoint of a run, as stored.
         * @description The schema is `docs/dump.schema.json`.
         */
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
         * Stream the events of a run as server-sent events.
         * @description The stream starts with the first event, or after `Last-Event-ID`, and continues with new events. Events: `history`
         *     (its id is its number, its data has `event` and `at`), `step` (status, loops, and the actions of loops that began),
         *     `printed` (a line of a running command: action, stream, text; it is not stored), `paused`, `stuck`, `error` (a
         *     problem; the stream ends), and `finished`, which is the last one. If the client has received all events of an ended
         *     run, the response is 204.
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
         * Export a run as one document.
         * @description It has the status, the graph, how the iterations of its loops ended, and complete reports of a few iterations. Its
         *     size is bounded, however large the run is.
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
        /**
         * Get the graph of the workflow of a run.
         * @description It is the version that the run was started with.
         */
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
        /** Get the history of a run: the iterations of its loops, and its events. */
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
         * Get one iteration, or what a run did outside of its loops.
         * @description It has the inputs, outputs and attempts of the actions, and the variables at its end. With `pointer`, the response
         *     is only the value at that pointer.
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
         * List the iterations of a loop in pages.
         * @description `next` of a page is `from` of the next page, or its `to` with `order=desc`.
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
        /** List the loops and foreaches of a run, newest first. */
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
        /**
         * Pause a run.
         * @description Effects in flight may end, and no new ones start.
         */
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
        /**
         * List the places that `retry` accepts as `from`, newest first.
         * @description They are the iterations and actions that the run reached.
         */
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
         * Get the last output lines of the running commands of a run.
         * @description The lines of a command are removed when it has ended. Lines that may contain a secret are omitted.
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
        /** Get the result of a run, or the reason why it failed. */
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
        /** Resume a paused run. */
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
         * Retry a run that failed, timed out or was cancelled.
         * @description The retry is a new run of the same version, with the label `windlass.retry_of`. It starts at the beginning with the
         *     same input, or at `from` with the state at that time. The old run stays unchanged.
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
        /** Send a signal to a run, for an action that waits for it now or later. */
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
        /** Get the files that a run was started from, as they were at that time. */
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
        /** Get counts of how the iterations of a loop ended, with durations, in cells. */
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
         * Test a condition in the iterations of a past loop.
         * @description It is evaluated up to the iteration after which the loop would have stopped.
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
         * Begin a browser session.
         * @description The response sets a cookie with the rights of the request's token. With a ticket of `windlass ui`, the cookie has
         *     all rights.
         */
        post: operations["begin_session"];
        /**
         * End a browser session.
         * @description The response removes the cookie, and the server no longer accepts it.
         */
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
        /** List the values that workflows store between their runs. */
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
        /** Get a value that a workflow stores between its runs, with its version. */
        get: operations["get_state"];
        /**
         * Write a value that a workflow stores between its runs.
         * @description A run that has read the old value continues to use it. Its own write of the value then fails, unless it has
         *     `overwrite: true`.
         */
        put: operations["put_state"];
        post?: never;
        /**
         * Delete a value that a workflow stores between its runs.
         * @description The next run starts with the initial value.
         */
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
        /**
         * Check a workflow and store nothing.
         * @description The body is the workflow itself, YAML or JSON, or JSON with its text as `text`.
         */
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
        /** List the stored workflows, sorted by name. */
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
        /**
         * Get a workflow with its text, its inputs and the limits of its loops.
         * @description The header `ETag` is its version.
         */
        get: operations["get_workflow"];
        /**
         * Store a workflow under a name.
         * @description It replaces the workflow of that name, which becomes a former version. Runs continue with the version that they were
         *     started with. The body is the workflow itself, YAML or JSON, or JSON with its text as `text`.
         */
        put: operations["put_workflow"];
        post?: never;
        /**
         * Delete a workflow and its former versions.
         * @description Its runs continue.
         */
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
        /** Get the schedule of a workflow, with its next times. */
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
        /**
         * Pause the schedule of a workflow.
         * @description It starts no runs until it is resumed. Times during the pause do not count as missed.
         */
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
        /** Resume the schedule of a workflow. */
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
         * List the past times of a schedule, with and without runs.
         * @description The range may have 1,000 times at most. `POST /v1/runs` with `workflow`, and with `run` and `time` of an entry as
         *     `run` and `scheduled_time`, starts a missing run.
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
         * List the versions of a workflow, newest first, with the numbers of their runs.
         * @description A run always uses the version that it was started with.
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
        /** @description What is stored of one action of an iteration. */
        ActionReport: {
            /** @description Name of the action. */
            action: string;
            /** @description Attempts of the action, the first one first. Empty if they are not stored. */
            attempts: components["schemas"]["AttemptReport"][];
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Message of its failure. Absent if it did not fail. */
            error?: string | null;
            /** @description Inputs of its last attempt. Absent if they are not stored. */
            inputs?: Json;
            /**
             * Format: int64
             * @description Index of the item, from 0, if the innermost loop of the action is a foreach. Otherwise absent.
             */
            item?: number | null;
            /** @description Idempotency key of its call. Absent if the action made no call, or the key is not stored. */
            key?: string | null;
            /** @description Outputs of the action. Absent if they are null or not stored. */
            outputs?: Json;
            /** @description Path of the action in the run: `outer#2/inner#7/fetch`. */
            path: string;
            /**
             * @description Names of the blocks and choices that enclose the action within its loop, outermost first. Absent if there are
             *     none.
             */
            scopes?: string[];
            started_at?: components["schemas"]["Timestamp"] | null;
            /** @description Status of the action: `Running`, or how it ended. */
            status: components["schemas"]["Progress"];
        };
        /** @description The sender of a command, in audit entries and in the records of a run. */
        Actor: {
            /** @description IP address of the sender, `control socket`, or `command line` for a command that opened the store itself. */
            from: string;
            /** @description Name of its token, or of its Unix user; `anonymous` on a server without tokens. */
            name: string;
        };
        /** @description One attempt of an action. */
        AttemptReport: {
            /**
             * Format: int32
             * @description Number of the attempt, from 1.
             */
            attempt: number;
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Message of its failure. Absent if it did not fail. */
            error?: string | null;
            /** @description Time when the attempt began. */
            started_at: components["schemas"]["Timestamp"];
        };
        /** @description A command that changed something, or tried to. */
        AuditEntry: components["schemas"]["Actor"] & {
            /** @description Name of the command: `start`, `pause`, `put-workflow`, … */
            action: string;
            /** @description Time when the command began. */
            at: components["schemas"]["Timestamp"];
            /** @description Unique id of the entry. A later entry has a greater id, except within the same millisecond. */
            id: string;
            /**
             * @description Result: `done`, the word of an error such as `unknown-run`, or `unknown` if the server or the connection ended
             *     before the result was known.
             */
            result?: string;
            /** @description Target of the command: a run, a workflow, or WORKFLOW/NAME of a value between runs. Absent if it has none. */
            target?: string | null;
        };
        /** @description Entries of the audit log, newest first. */
        AuditReport: {
            entries: components["schemas"]["AuditEntry"][];
            /** @description Number of further selected entries, beyond the limit. */
            more: number;
        };
        /** @description A run whose end another run waits for. */
        AwaitedRun: {
            /** @description Id of the run. */
            run: string;
            stopped?: components["schemas"]["Stop"] | null;
        };
        /** @description Alternative to a token at the beginning of a session. */
        BeginSession: {
            /** @description Ticket of `windlass ui`. It is valid once, for one minute. */
            ticket?: string | null;
        };
        /** @description How much a loop used of its limit `tokens` or `cost`. */
        BudgetReport: {
            /** @description Name of the limit: `tokens` or `cost`. */
            budget: string;
            /**
             * Format: double
             * @description Maximum amount that the actions may use.
             */
            limit: number;
            /** @description Both amounts as text: `tokens 12,300 of 50,000`. */
            text: string;
            /**
             * Format: double
             * @description Amount that the actions of the loop have used.
             */
            used: number;
        };
        /** @description A run for which a command succeeded. */
        BulkDone: {
            /** @description Id of the new run of a `retry`. Otherwise absent. */
            new_run?: string | null;
            /** @description Id of the run. */
            run: string;
            status?: components["schemas"]["RunStatus"] | null;
        };
        /** @description A run for which a command failed. */
        BulkFailed: {
            /** @description Word of the error type: `unknown-run`, `run-ended`, … */
            code: string;
            /** @description Message of the error. */
            detail: string;
            /** @description Id of the run. */
            run: string;
        };
        /** @description Result of a command for many runs. */
        BulkReport: {
            /** @description Runs for which the command succeeded. */
            done: components["schemas"]["BulkDone"][];
            /** @description Runs for which the command failed. */
            failed: components["schemas"]["BulkFailed"][];
        };
        /** @description One command for many runs. */
        BulkRuns: {
            /** @description Command to execute. */
            do: components["schemas"]["BulkVerb"];
            /** @description Ids of the runs, at most 1,000. */
            runs: string[];
        };
        /**
         * @description Command for many runs. `retry` starts from the beginning.
         * @enum {string}
         */
        BulkVerb: "pause" | "resume" | "cancel" | "retry";
        /** @description One value that differs between two results. */
        Changed: {
            /** @description Older value. Null if the older result does not have it. */
            from: Json;
            /** @description Path of the value: `fetch.body.remaining`. `….length` if only the lengths of two lists are compared. */
            path: string;
            /** @description Newer value. Null if the newer result does not have it. */
            to: Json;
        };
        /** @description A possible value. */
        Choice: {
            /** @description Label of the value. */
            label: string;
            /** @description Type of the port that the value names. Absent for other values. */
            type?: string | null;
            /** @description The value. */
            value: string;
        };
        /** @description A column of a table. */
        Column: {
            /** @description Values to choose from. Absent without a list of values. */
            choices?: components["schemas"]["Choice"][];
            /** @description Key of the column in each row. */
            id: string;
            /** @description Label of the column. */
            label: string;
            /** @description Type of the control that edits the column. */
            type: components["schemas"]["FieldKind"];
        };
        /** @description Completions at a position. */
        Completion: {
            /** @description Completions, the likeliest first. They are not filtered by the text that is typed already. */
            items: components["schemas"]["CompletionItem"][];
            /** @description Range of the text that a chosen completion replaces. */
            range: components["schemas"]["TextRange"];
        };
        /** @description One completion. */
        CompletionItem: {
            /** @description Type of the value, or signature of a function. Absent if it is unknown. */
            detail?: string | null;
            /** @description Description of the completion. Absent if it has none. */
            documentation?: string | null;
            /** @description Text that is inserted. */
            insert: string;
            /** @description Kind of the completion. */
            kind: components["schemas"]["CompletionKind"];
            /** @description Label of the completion. */
            label: string;
            /** @description Whether the text has placeholders such as `$0` and `${1:name}`. Absent if false. */
            snippet?: boolean;
        };
        /**
         * @description Kind of a completion. A `port` is of a canvas node; a `snippet` is a whole action.
         * @enum {string}
         */
        CompletionKind: "key" | "value" | "function" | "action" | "variable" | "port" | "input" | "snippet";
        /** @description Condition of a loop, with the values that it reads. */
        ConditionReport: {
            /**
             * @description Variables and parts that the condition reads, with their current values. During an iteration, outputs are those
             *     of the iteration before it.
             */
            reads: components["schemas"]["Read"][];
            /** @description Text of the condition, as its file has it. */
            text: string;
            /** @description Value of the condition at its last check. Null if it was not checked. */
            value?: boolean | null;
        };
        /** @description Test of a condition in the iterations of a past loop. */
        ConditionTest: {
            /**
             * Format: int64
             * @description Number, from 0, of the last ended iteration of the run's loop. Absent if no iteration has ended.
             */
            ended_at?: number | null;
            /** @description Message of the first error of the condition in an iteration. Absent if it never failed. */
            error?: string | null;
            /** @description Last checked iterations, at most 100. */
            rows: components["schemas"]["TestedIteration"][];
            /**
             * Format: int64
             * @description Number of iterations in which it was not checked: their variables are not stored, they are after the first
             *     2,000, or the test exceeded its budget.
             */
            skipped: number;
            /**
             * Format: int64
             * @description Number, from 0, of the iteration after which the loop would have stopped. Absent if it would not have stopped.
             */
            stopped_at?: number | null;
            /**
             * Format: int64
             * @description Number of iterations in which the condition was checked.
             */
            tried: number;
        };
        /** @description What one branch of a run does or waits for. */
        CurrentActivity: {
            /** @description Name of the action. */
            action: string;
            /**
             * Format: int32
             * @description Number, from 1, of the attempt that runs or is waited for. Null if neither a call nor a retry is involved.
             */
            attempt?: number | null;
            awaits_run?: components["schemas"]["AwaitedRun"] | null;
            /** @description Id of the run that a `workflow` action waits for. Otherwise absent. */
            child?: string | null;
            /** @description Command of a shell action, name of a handler, or name of the called workflow. Otherwise null. */
            detail?: string | null;
            due_at?: components["schemas"]["Timestamp"] | null;
            /** @description Innermost iteration or item that contains it: `outer#2/each#7`. Absent outside of loops. */
            inside?: string | null;
            /** @description Idempotency key of the call. Null for other waits. */
            key?: string | null;
            last_error?: components["schemas"]["LastError"] | null;
            /** @description Path of the innermost loop around it. Null outside of loops. */
            loop?: string | null;
            /**
             * Format: int32
             * @description Maximum number of attempts. Null if the action is not retried.
             */
            max_attempts?: number | null;
            /** @description HTTP method of the call. Null for other actions. */
            method?: string | null;
            question?: components["schemas"]["QuestionReport"] | null;
            /**
             * @description Whether the call waits to start because the maximum of concurrent effects is reached (`--max-effects`). Absent
             *     if false.
             */
            queued?: boolean;
            rate_limit?: components["schemas"]["RateLimitWait"] | null;
            /**
             * Format: int64
             * @description Number of signals of this name that the run received before. Send it as `received` of a signal, so that the
             *     signal answers no later wait. Absent unless it waits for a signal.
             */
            received?: number | null;
            /** @description Name of the signal that it waits for. Otherwise null. */
            signal?: string | null;
            since?: components["schemas"]["Timestamp"] | null;
            /** @description Display name, if it differs from the name. Otherwise null. */
            title?: string | null;
            /** @description Type of the action, as its file has it. Null if it is unknown. */
            type?: string | null;
            /** @description URL of an HTTP call. Null for other actions. */
            uri?: string | null;
            /**
             * @description What it waits for: `call` (its call in flight), `retry` (the next attempt), `delay` (the next iteration),
             *     `sleep`, `signal`, `limit` (a resume after a limit), or `next` if it continues at once.
             */
            waits_for: string;
            /** @description Whether the run waits for memory of the server (`--max-guest-memory`). Absent if false. */
            waits_for_memory?: boolean;
        };
        /** @description The workflow that is stored under a name at present. */
        CurrentWorkflow: {
            /** @description Text of its file. */
            text: string;
            /** @description SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            version: string;
        };
        /** @description An error or warning about a workflow. */
        DiagnosticReport: {
            /** @description Stable code of the diagnostic, such as `unknown-type`. */
            code: string;
            /**
             * Format: int32
             * @description Column in the line, from 1, in characters.
             */
            column: number;
            /** @description Path of the file. Null if it is unknown. */
            file?: string | null;
            /** @description Possible corrections, as edits of the file. Absent if there are none. */
            fixes?: components["schemas"]["Fix"][];
            /** @description How to correct it. Null without a hint. */
            hint?: string | null;
            /**
             * Format: int32
             * @description Length of the wrong text, in characters.
             */
            length: number;
            /**
             * Format: int32
             * @description Line in the file, from 1.
             */
            line: number;
            /** @description Message, in one line. */
            message: string;
            /** @description The same place as editors count it, from 0. */
            range: components["schemas"]["TextRange"];
            /** @description Severity: `error` or `warning`. */
            severity: string;
        };
        /**
         * @description Differences between two iterations: their statuses, conditions, errors and results. Variables and the actions'
         *     inputs are compared if the variables of both iterations are stored.
         */
        DifferenceReport: {
            /** @description Values that differ, at most 1,000, with paths such as `result.fetch.body.n` and `variables.n`. */
            changed: components["schemas"]["Changed"][];
            /** @description Path of the first iteration. */
            from: string;
            /** @description Id of the run. */
            run: string;
            /** @description Path of the second iteration. */
            to: string;
            /**
             * Format: int64
             * @description Number of values that are equal, without those that contain other values. If `changed` is full, the count is
             *     incomplete.
             */
            unchanged: number;
        };
        /** @description An edge between two nodes of the same frame. */
        Edge: {
            /** @description Whether the edge leads upwards, to a node that ran before. Absent if false. */
            back?: boolean;
            /** @description Id of the node at its start. */
            from: string;
            /** @description Port at its start. Absent if it connects no ports. */
            from_port?: string | null;
            /**
             * @description Kind of the edge: `next`; `branch`, out of a choice; `failed`, if the node before did not succeed; `data`, from
             *     port to port of a canvas; `previous`, such data of the iteration before; `again`, from the end of an iteration
             *     to the next one; `break`, out of a loop.
             */
            kind: string;
            /** @description Label of the edge. Absent if it has none. */
            label?: string | null;
            /**
             * @description Position of the label as `[x, y]` in pixels: the left end of its text, at half its height. There is room for 36
             *     characters. Absent without a label.
             */
            label_at?: [
                number,
                number
            ] | null;
            /** @description Corners of the edge as `[x, y]` in pixels. Its parts are horizontal or vertical. */
            points: [
                number,
                number
            ][];
            /** @description Id of the node at its end. */
            to: string;
            /** @description Port at its end. Absent if it connects no ports. */
            to_port?: string | null;
        };
        /** @description One edit of a text. */
        Edit: {
            /** @description Id of the field in the panel of the node. Absent with `pointer`. */
            field?: string | null;
            /** @description Path of the node, or its name. Absent with `pointer`. */
            node?: string | null;
            /** @enum {string} */
            op: "set";
            /** @description JSON pointer to the value in the text, instead of `node` and `field`. */
            pointer?: string | null;
            /** @description New value. For a field, null removes it from the text. */
            value?: Json;
        } | {
            /** @enum {string} */
            op: "remove";
            /** @description JSON pointer to the value in the text. */
            pointer: string;
        } | {
            /** @description Name of the new node. If absent, a name is made from the type. */
            name?: string | null;
            /** @description Path or name of the existing node to which `where` is relative. If empty, the new node is added at the top. */
            node?: string;
            /** @enum {string} */
            op: "add";
            /** @description Type of the new node, as `POST /v1/language/types` lists it. */
            type: string;
            /** @description The new node, without its name. If absent, the smallest valid node of the type. */
            value?: Json;
            /** @description Whether the new node is added before, after or inside of `node`. */
            where: components["schemas"]["Where"];
            /**
             * Format: double
             * @description Horizontal position of the new node on a canvas. Used only together with `y`.
             */
            x?: number | null;
            /**
             * Format: double
             * @description Vertical position of the new node on a canvas. Used only together with `x`.
             */
            y?: number | null;
        } | {
            /** @description Path of the node, or its name. */
            node: string;
            /** @enum {string} */
            op: "delete";
        } | {
            /** @description New name of the node. */
            name: string;
            /** @description Path of the node, or its name. */
            node: string;
            /** @enum {string} */
            op: "rename";
        } | {
            /** @description Output as `node.port`, or only `node` to set the order. */
            from: string;
            /** @description Path of the loop that contains both nodes. If absent, they are at the top. */
            in?: string | null;
            /** @enum {string} */
            op: "connect";
            /** @description Input as `node.port`, or only `node` to set the order. */
            to: string;
        } | {
            /** @description Output as `node.port`, or only `node`. */
            from: string;
            /** @description Path of the loop that contains both nodes. If absent, they are at the top. */
            in?: string | null;
            /** @enum {string} */
            op: "disconnect";
            /** @description Input as `node.port`, or only `node`. */
            to: string;
        } | {
            /** @description Path of the node, or its name. */
            node: string;
            /** @enum {string} */
            op: "move";
            /**
             * Format: double
             * @description New horizontal position on the canvas.
             */
            x: number;
            /**
             * Format: double
             * @description New vertical position on the canvas.
             */
            y: number;
        };
        /** @description A text and its edits. */
        EditText: {
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. */
            dialect?: string | null;
            /** @description Edits, applied in order; at most 1,000. */
            edits: components["schemas"]["Edit"][];
            /** @description File name of the text. If absent, `workflow.yaml`. */
            file?: string | null;
            /** @description Further files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description Text of the workflow, YAML or JSON. */
            text: string;
        };
        /** @description Result of an edit. */
        Edited: {
            /** @description Differences from the old text. Columns do not count a byte order mark. */
            edits: components["schemas"]["TextEdit"][];
            /** @description Path of the node that was added or renamed last. Absent without such a node. */
            node?: string | null;
            /** @description Complete new text, with the byte order mark of the old one. */
            text: string;
        };
        /** @description An error, with the position where it happened. */
        ErrorReport: {
            /** @description Name of the action that failed. Null if the error is not of an action. */
            action?: string | null;
            /** @description HTTP status or exit code. Null for other errors. */
            code?: string | null;
            /** @description Path of the workflow file. Null if it is unknown, and in lists of runs. */
            file?: string | null;
            /**
             * Format: int64
             * @description Number of the iteration of that loop, from 0. Null outside of loops.
             */
            iteration?: number | null;
            /** @description Kind of the error: `http`, `timeout`, `limit`, … */
            kind: string;
            /**
             * Format: int32
             * @description Line in that file, from 1. Null if it is unknown.
             */
            line?: number | null;
            /** @description Path of the innermost loop around it. Null outside of loops. */
            loop?: string | null;
            /** @description Message of the error, in one line. */
            message: string;
        };
        /** @description A run in one document of bounded size. */
        ExportReport: {
            graph?: components["schemas"]["Graph"] | null;
            /** @description Loops and foreaches of the run: the newest 20, newest first. */
            loops: components["schemas"]["LoopExport"][];
            /**
             * Format: int64
             * @description Number of further stored loops.
             */
            more_loops: number;
            /** @description What the run did outside of its loops. */
            outermost: components["schemas"]["IterationReport"];
            /** @description Status of the run. */
            status: components["schemas"]["StatusReport"];
        };
        /**
         * @description Numbers of runs by status, by workflow and by hour. Each count ignores the filter of its own kind, and so shows what
         *     another choice would return.
         */
        Facets: {
            /**
             * @description Number of runs that were started in this hour or the 23 hours before it: by the beginning of the hour in UTC,
             *     then by status. An hour without runs is absent.
             */
            hour: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            /** @description Number of runs by status. `SucceededWithFailures` counts the runs of `Succeeded` in which actions failed. */
            status: {
                [key: string]: number;
            };
            /** @description Number of runs by name of the workflow. */
            workflow: {
                [key: string]: number;
            };
        };
        /** @description An operation whose `cancel` failed. It may still run at its server. */
        FailedCancel: {
            /** @description Message of the error. */
            message: string;
            /** @description Name of the action. */
            operation: string;
        };
        /** @description An `on_failure` or `on_finish` that failed, so that its alert may not have been sent. */
        FailedEnding: {
            /** @description Name of the handler: `on_failure` or `on_finish`. */
            ending: string;
            /** @description Message of its error. */
            message: string;
        };
        /** @description A foreach that succeeded although items of it failed. */
        FailedItems: {
            /**
             * Format: int64
             * @description Number of failed items.
             */
            failed: number;
            /** @description Message with the number of items, the name of the foreach, and the error of the first failed item. */
            message: string;
        };
        /** @description Failures whose messages differ only in their numbers. */
        FailureCount: {
            /**
             * Format: int64
             * @description Number of iterations with such a failure.
             */
            count: number;
            /**
             * Format: int64
             * @description Number of the first of these iterations, from 0.
             */
            first: number;
            /**
             * Format: int64
             * @description Number of the last of these iterations, from 0.
             */
            last: number;
            /** @description Message of the failures, with `#` for each number except status and exit codes. */
            message: string;
        };
        /** @description A field of a panel. */
        Field: {
            /**
             * Format: int64
             * @description Maximum value that the operator allows. Absent without a maximum.
             */
            cap?: number | null;
            /** @description Values to choose from. Absent without a list of values. */
            choices?: components["schemas"]["Choice"][];
            /** @description Columns of a table. Absent for other types. */
            columns?: components["schemas"]["Column"][];
            /** @description Value that is used if the text sets none. Absent if it has none. */
            default?: Json;
            /** @description What is wrong with the value. Absent if nothing is known to be wrong. */
            error?: string | null;
            /** @description Description of the field. Absent if it has none. */
            help?: string | null;
            /** @description Id of the field in the panel. */
            id: string;
            /** @description Label of the field. */
            label: string;
            parts?: components["schemas"]["Parts"] | null;
            /** @description JSON pointer to the value in the text. */
            pointer: string;
            /** @description Type of the control that edits the field. */
            type: components["schemas"]["FieldKind"];
            /** @description Value of the field. Null if the text does not set it. */
            value: Json;
        };
        /**
         * @description Type of the control that edits a field. A `table` is a list of rows; `code` is a text of several lines, or any value
         *     as YAML.
         * @enum {string}
         */
        FieldKind: "text" | "number" | "bool" | "duration" | "choice" | "expression" | "condition" | "file" | "table" | "code";
        /** @description A file of a workflow. */
        FileReport: {
            /** @description Path of the file, as the request or the workflow named it. */
            path: string;
            /** @description Text of the file. */
            text: string;
        };
        /** @description A further file of a workflow. */
        FileText: {
            /** @description Path of the file, relative to the folder of the workflow. */
            path: string;
            /** @description Text of the file. */
            text: string;
        };
        /** @description A possible correction of a mistake. */
        Fix: {
            /** @description Edits of the file that has the mistake. */
            edits: components["schemas"]["TextEdit"][];
            /** @description Title of the correction: "change `htp` to `http`". */
            title: string;
        };
        /** @description A foreach, a parallel or a graph of actions that runs: its branches run concurrently. */
        ForkReport: {
            /**
             * Format: int64
             * @description Number of branches that have ended.
             */
            ended: number;
            /**
             * Format: int64
             * @description Number of ended branches that failed. Absent if it is 0.
             */
            failed?: number;
            /** @description Innermost iteration or item that contains it: `outer#2/each#7`. Absent outside of loops. */
            inside?: string | null;
            /** @description Items of a foreach that are in flight, at most 200. Absent if there are none. */
            lanes?: components["schemas"]["LaneReport"][];
            /** @description Name of the step. */
            name: string;
            /** @description Path of a foreach: `outer#2/each`. Absent for other types. */
            path?: string | null;
            /**
             * Format: int64
             * @description Number of branches that run.
             */
            running: number;
            /**
             * Format: int64
             * @description Number of all branches.
             */
            total: number;
            /** @description Type of the step: `foreach`, `parallel` or `dag`. */
            type: string;
        };
        /** @description A field of a form: one member of the answer. */
        FormField: {
            /** @description Value with which the form begins. Absent if it has none. */
            default?: Json;
            /** @description Label for people. */
            label: string;
            /** @description Name of the member. */
            name: string;
            /** @description Possible values, if the type is `options`. Otherwise absent. */
            options?: Json[];
            /** @description Whether the answer must have the member. */
            required: boolean;
            type: components["schemas"]["FormFieldKind"];
        };
        /**
         * @description Type of the value of a field: `options` is one of a list of values, `json` is any JSON.
         * @enum {string}
         */
        FormFieldKind: "text" | "boolean" | "integer" | "number" | "options" | "json";
        /**
         * @description A workflow as nodes and edges with positions, laid out from top to bottom. Positions and sizes are in pixels, from
         *     the top left corner of the graph.
         */
        Graph: {
            /** @description Edges between nodes of the same frame. */
            edges: components["schemas"]["Edge"][];
            /**
             * Format: int64
             * @description Height of the graph in pixels.
             */
            height: number;
            /** @description Nodes of the graph. A frame is before the nodes in it. */
            nodes: components["schemas"]["Node"][];
            root?: components["schemas"]["Node"] | null;
            /**
             * Format: int64
             * @description Width of the graph in pixels.
             */
            width: number;
        };
        /** @description The first event of a stream: the server that sends it. */
        Hello: {
            /** @description Role of the client's token: `view`, `operate` or `admin`. */
            access: string;
            /** @description Reason why the store accepts no writes. Absent if it accepts writes. */
            outage?: string | null;
            /**
             * @description Whether all changes after the client's last event follow, including deleted runs. False for a new client, and
             *     after a restart of the server.
             */
            resumed: boolean;
            /** @description Time when the server was started. */
            server_started_at: components["schemas"]["Timestamp"];
            /** @description Version of the server. */
            version: string;
        };
        /** @description What happened; other members depend on `event` */
        HistoryEvent: {
            at: components["schemas"]["Timestamp"];
            event: string;
        } & {
            [key: string]: Json;
        };
        /** @description The iterations of a run and, if requested, its events. */
        HistoryReport: {
            /** @description Format of the workflow: `loom`, `azure`, `tea` or `canvas`. Null if the files cannot be read. */
            dialect?: string | null;
            /** @description Number of stored iterations that ended before the listed ones. */
            earlier: number;
            /** @description Events, oldest first. Null if they were not requested. */
            events?: components["schemas"]["NumberedEvent"][] | null;
            /**
             * Format: int64
             * @description Number of iterations of these loops that are no longer stored.
             */
            forgotten: number;
            /**
             * Format: int64
             * @description Number of requested events before the listed ones that are no longer stored.
             */
            forgotten_events: number;
            /** @description Iterations that have ended, in the order of their ends. */
            iterations: components["schemas"]["IterationRow"][];
            /** @description Id of the run. */
            run: string;
            /** @description Status of the run. */
            status: components["schemas"]["RunStatus"];
        };
        /** @description A run that a webhook started. */
        HookStart: {
            /** @description Id of the run. */
            run: string;
        };
        /** @description Description of a position of a text. */
        Hover: {
            /** @description Message of the failed evaluation. Absent if it did not fail. */
            error?: string | null;
            /** @description Range of the text that is described. */
            range: components["schemas"]["TextRange"];
            /** @description Description, as plain text. */
            text: string;
            /** @description Value of the expression in the requested iteration. Absent without an iteration, and if the evaluation failed. */
            value?: Json;
        };
        /** @description An input that a workflow declares. */
        InputReport: {
            /** @description Value that is used if a start passes none. Null if the input is required. */
            default: Json;
            /** @description What the input is for. Absent if the workflow does not say it. */
            description?: string | null;
            /** @description Name of the input. */
            name: string;
            /** @description Whether a start must pass a value. */
            required: boolean;
            /** @description Type of the input: `any`, `string`, `integer`, `number`, `boolean`, `array` or `object`. */
            type: string;
        };
        /** @description One iteration in a page. `result` is null if it is not stored, and shortened if it is over 64 KiB. */
        IterationEntry: components["schemas"]["IterationRow"] & {
            /**
             * Format: int32
             * @description Highest number of attempts of one of its actions, at least 1.
             */
            attempts: number;
            /**
             * Format: int64
             * @description Duration of the iteration in milliseconds.
             */
            duration_ms: number;
            /** @description Message of its failure. If it succeeded with failures, the message of the last one. Absent without a failure. */
            error?: string | null;
            /** @description How much of the iteration is stored. */
            stored: components["schemas"]["StoredDetail"];
        };
        /**
         * @description One iteration, or what a run did outside of its loops (then `path` and `loop` are empty). A value over 64 KiB is
         *     `{"$large": {bytes, preview, pointer}}`: its size, its beginning and the pointer with which it is requested.
         */
        IterationReport: {
            /** @description Actions of the iteration, as far as they are stored. */
            actions: components["schemas"]["ActionReport"][];
            /**
             * Format: int32
             * @description Highest number of attempts of one of its actions, at least 1.
             */
            attempts: number;
            /**
             * @description Value of the loop's condition before the iteration. Absent if the loop checks its condition only after
             *     iterations.
             */
            condition?: boolean | null;
            ended_at?: components["schemas"]["Timestamp"] | null;
            /** @description Message of its failure. If it succeeded with failures, the message of the last one. Absent without a failure. */
            error?: string | null;
            /**
             * Format: int64
             * @description Number of the iteration, from 0. Outside of loops it is 0.
             */
            iteration: number;
            /** @description Path of the loop: `outer#2/inner`. Empty outside of loops. */
            loop: string;
            /** @description Path of the iteration: `outer#2/inner#7`. Empty outside of loops. */
            path: string;
            /** @description Outputs of its actions, by name. Absent while it runs, and if they are not stored. */
            result?: Json;
            /** @description Id of the run. */
            run: string;
            /** @description Time when the iteration began. Outside of loops, the time when the run started. */
            started_at: components["schemas"]["Timestamp"];
            /** @description Status of the iteration: `Running`, or how it ended. */
            status: components["schemas"]["Progress"];
            /** @description How much of the iteration is stored. */
            stored: components["schemas"]["StoredDetail"];
            /** @description Variables at the end of the iteration, by name. Absent if they are not stored. */
            variables?: Json;
            /** @description Times in which the iteration, or the loop before it, waited. */
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
        /** @description A page of the iterations of one loop. */
        IterationsReport: {
            /** @description Iterations of the page, in the requested order. */
            iterations: components["schemas"]["IterationEntry"][];
            /** @description Path of the loop: `outer#2/inner`. */
            loop: string;
            /**
             * Format: int64
             * @description Start of the next page: the value for its `from`, or for its `to` with `order=desc`. Absent on the last page.
             */
            next?: number | null;
            /**
             * Format: int64
             * @description Number of iterations that were left out of the page, because the values that `changed` or
             *     `text` reads are not stored.
             */
            not_stored?: number;
            /** @description Id of the run. */
            run: string;
        };
        /** @description An item of a foreach that is in flight. */
        LaneReport: {
            /**
             * Format: int32
             * @description Number, from 1, of the attempt that runs or is waited for. Absent if no attempt is known.
             */
            attempt?: number | null;
            /**
             * Format: int64
             * @description Index of the item, from 0.
             */
            item: number;
            /** @description Path of the item: `each#3`. Activities in it have this path, or a longer one, as `inside`. */
            path: string;
            /** @description Time when the item began. */
            since: components["schemas"]["Timestamp"];
        };
        /** @description Failure of an attempt. */
        LastError: {
            /** @description Time of the failure. */
            at: components["schemas"]["Timestamp"];
            /** @description HTTP status or exit code. Null for other errors. */
            code?: string | null;
            /** @description Kind of the error: `http`, `timeout`, `shell`, … */
            kind: string;
            /** @description Message of the error, in one line. */
            message: string;
        };
        /** @description The last iteration of a loop that ended. */
        LastIteration: {
            /** @description First 8 differences from the result of the iteration before it, without headers of HTTP responses. */
            changed: components["schemas"]["Changed"][];
            /** @description Time when the iteration ended. */
            ended_at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description Number of the iteration, from 1.
             */
            iteration: number;
            /** @description Outputs of its actions, by name. */
            result: Json;
            /** @description How the iteration ended. */
            status: components["schemas"]["Status"];
            /**
             * Format: int64
             * @description Number of iterations directly before it with the same result.
             */
            unchanged: number;
        };
        /** @description A loop that ended at a limit. */
        LimitReached: {
            /**
             * Format: int64
             * @description Number of iterations that had ended, the last time that it reached the limit.
             */
            iterations: number;
            /** @description Limit that the loop reached: `count`, `timeout`, `unchanged`, `tokens` or `cost`. */
            limit: components["schemas"]["LoopEnd"];
            /** @description Path of the loop in the file, without iterations: `outer/inner`. */
            loop: string;
            /**
             * Format: int64
             * @description How often the loop ended at this limit. A nested loop can end once per iteration of the outer one.
             */
            times: number;
            /** @description Display name, if it differs from the name. Otherwise null. */
            title?: string | null;
            /** @description Type of the loop, as its file has it: `until`, `while`, … */
            type: string;
        };
        /** @description A page of runs, newest first, with counts. */
        ListReport: {
            facets?: components["schemas"]["Facets"] | null;
            /** @description Number of runs after this page. */
            more: number;
            /** @description Value for `after` of the next page. Null on the last page. */
            next?: string | null;
            /** @description Runs of the page. */
            runs: components["schemas"]["RunRow"][];
            /** @description Number of selected runs on all pages. */
            total: number;
            /** @description Number of selected runs on all pages that are `Running` or `Waiting`, and not parked. */
            unfinished: number;
        };
        /** @description How much an ended loop used of its limit `tokens` or `cost`. */
        LoopBudget: components["schemas"]["BudgetReport"] & {
            /** @description Path of the loop: `outer#2/inner`. */
            path: string;
        };
        /** @description A loop of a run in a list. */
        LoopCell: {
            /**
             * Format: int64
             * @description Number, from 1, of the iteration that runs, or else of the last one that ended. 0 before the first one.
             */
            iteration: number;
            /**
             * Format: int64
             * @description Number of iterations that have ended.
             */
            iterations_completed: number;
            /**
             * Format: int64
             * @description Maximum number of iterations.
             */
            max_iterations: number;
            /** @description Name of the loop. */
            name: string;
            /** @description Path of the loop in the run: `outer#2/inner`. */
            path: string;
            /**
             * @description Statuses of the last iterations, at most 24, as one letter each, oldest first: `s` succeeded, `w` succeeded with
             *     failures, `f` failed, `t` timed out, `c` cancelled, `k` skipped.
             */
            recent: string;
            /** @description Display name, if it differs from the name. Otherwise absent. */
            title?: string | null;
        };
        /** @enum {string} */
        LoopEnd: "condition" | "break" | "count" | "timeout" | "failed" | "cancelled" | "repeat" | "unchanged" | "tokens" | "cost";
        /** @description A loop or foreach of a run. */
        LoopExport: {
            /**
             * @description First 25 iterations, last 25, and last 25 that failed or timed out, in the order of their numbers. Their results
             *     are null.
             */
            iterations: components["schemas"]["IterationEntry"][];
            /** @description Complete reports of the last iteration that failed or timed out, and of the last iteration. */
            shown: components["schemas"]["IterationReport"][];
            /** @description How its iterations ended, as counts in cells. */
            strip: components["schemas"]["StripReport"];
            /** @description Status and limits of the loop. */
            summary: components["schemas"]["LoopSummary"];
        };
        /** @description Limits of a loop. */
        LoopLimits: {
            /** @description When the condition is checked: `before` or `after` each iteration. */
            checks: string;
            /** @description Text of the condition, as its file has it. */
            condition: string;
            /** @description Maximum cost of its actions: a number, or the expression that computes it. Absent without this limit. */
            cost?: string | null;
            /** @description Maximum number of iterations: a number, or the expression that computes it. */
            count: string;
            /** @description Delay between two iterations: a duration, an expression, or a description. Null without a delay. */
            delay?: string | null;
            /**
             * Format: int32
             * @description Line of the loop in its file, from 1.
             */
            line: number;
            /** @description Name of the loop. */
            name: string;
            /** @description What happens at a limit: `fail`, `continue` or `pause`. */
            on_limit: string;
            /** @description Maximum duration in ISO 8601, or the expression that computes it. Null without a timeout. */
            timeout?: string | null;
            /**
             * @description Maximum number of tokens of its actions: a number, or the expression that computes it. Absent without this
             *     limit.
             */
            tokens?: string | null;
            /** @description Type of the loop, as its file has it: `until`, `while`, … */
            type: string;
            /**
             * @description Number of consecutive iterations with the same result at which the loop ends, and what is compared: `3 times the
             *     same`. Absent without this limit.
             */
            unchanged?: string | null;
        };
        /** @description One loop that a run is in. */
        LoopReport: {
            /** @description What the actions of the loop used of its limits `tokens` and `cost`. Absent without such limits. */
            budgets?: components["schemas"]["BudgetReport"][];
            condition?: components["schemas"]["ConditionReport"] | null;
            deadline?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Number, from 1, of the iteration that runs, or else of the last one that ended. 0 before the first one.
             */
            iteration: number;
            /**
             * Format: int64
             * @description Number of iterations that have ended.
             */
            iterations_completed: number;
            last?: components["schemas"]["LastIteration"] | null;
            /**
             * Format: int64
             * @description Maximum number of iterations.
             */
            max_iterations: number;
            /** @description Name of the loop. */
            name: string;
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /** @description Path of the loop in the run: `outer#2/inner`. */
            path: string;
            /** @description Time when the run entered the loop. */
            started_at: components["schemas"]["Timestamp"];
            /** @description Display name, if it differs from the name. Otherwise null. */
            title?: string | null;
            /** @description Type of the loop, as its file has it: `until`, `while`, … */
            type: string;
        };
        /** @description One loop or foreach of a run. */
        LoopSummary: {
            ended_at?: components["schemas"]["Timestamp"] | null;
            /**
             * Format: int64
             * @description Number of iterations that have ended. Of a foreach, the highest index of an ended item, plus 1.
             */
            iterations: number;
            /**
             * Format: int64
             * @description Maximum number of iterations. Of a running foreach, the number of its items; absent if the foreach has ended.
             */
            max_iterations?: number | null;
            /** @description Name of the loop. */
            name: string;
            /** @description Path of the loop in the run: `outer#2/inner`. */
            path: string;
            /** @description Time when the run entered the loop. */
            started_at: components["schemas"]["Timestamp"];
            /**
             * @description `running`, or how the loop ended: `condition`, `break`, `count`, `timeout`, `unchanged`, `tokens`, `cost`,
             *     `failed`, `cancelled` or `repeat`. A foreach that succeeded has `ended`.
             */
            status: string;
            /** @description Display name, if it differs from the name. Otherwise absent. */
            title?: string | null;
            /** @description Type of the loop, as its file has it: `until`, `foreach`, … */
            type: string;
        };
        /** @description The loops and foreaches of a run, newest first, at most 1,000. */
        LoopsReport: {
            /** @description Loops and foreaches that the run reached. A foreach is listed if an ended item of it is stored. */
            loops: components["schemas"]["LoopSummary"][];
            /** @description Id of the run. */
            run: string;
        };
        /** @description The caller and its role. */
        Me: {
            /** @description Role of the caller: `view`, `operate` or `admin`. */
            access: string;
            /** @description Name of its token, or of its Unix user. Absent for an anonymous caller. */
            name?: string | null;
        };
        /** @description A node of a graph: a step, a scope, or the start or end of a scope. */
        Node: {
            /** @description Name of its action, if that differs from the name. Otherwise absent. */
            action?: string | null;
            /** @description Condition of a loop or branch, or items of a foreach, as the file has it. Otherwise absent. */
            condition?: string | null;
            /**
             * Format: int32
             * @description Index of its file among the files of the workflow. Absent for the first file, 0.
             */
            file?: number | null;
            /** @description Whether the node has an inside. */
            foldable: boolean;
            /** @description Whether the node is drawn as a frame, with its inside in it. */
            frame: boolean;
            /**
             * Format: int64
             * @description Height of the node in pixels.
             */
            height: number;
            /** @description Id of the node. It is the same in every graph of the same text. */
            id: string;
            /**
             * @description Kind of the node: `loop`, `foreach`, `parallel`, `lane` (a branch of a parallel), `graph`, `if`, `switch`,
             *     `try`, `tried` (the part of a `try` whose failures are handled), `block`; `action`, `set`, `compute`, `wait`,
             *     `signal`, `respond`, `raise`, `terminate`; `choice`, `start`, `end`, `break`.
             */
            kind: string;
            /** @description Limits of the node. Absent if it has none. */
            limits?: components["schemas"]["NodeLimits"];
            /**
             * Format: int32
             * @description Line of the node in its file, from 1. Absent if it is unknown.
             */
            line?: number | null;
            /** @description Name of the node, as status and history have it. */
            name: string;
            /** @description Id of the frame that contains the node. Absent at the top. */
            parent?: string | null;
            /** @description Path of the node in a run, without iterations: the names of the loops around it, and its name. */
            path: string;
            /** @description Connected ports of a canvas node. Absent if there are none. */
            ports?: components["schemas"]["Port"][];
            /** @description Description of what the node does, in one line. Absent if it is empty. */
            summary?: string;
            /** @description Display name, if it differs from the name. Otherwise absent. */
            title?: string | null;
            /** @description Type of the node, as its file has it: `until`, `http`, … Absent if it has none. */
            type?: string | null;
            /**
             * Format: int64
             * @description Width of the node in pixels.
             */
            width: number;
            /**
             * Format: int64
             * @description Position of its left side, in pixels.
             */
            x: number;
            /**
             * Format: int64
             * @description Position of its top side, in pixels.
             */
            y: number;
        };
        /** @description Limits of a node: numbers and durations, or the expressions that compute them. */
        NodeLimits: {
            /**
             * Format: int32
             * @description Maximum number of items of a foreach that run concurrently. Otherwise absent.
             */
            concurrency?: number | null;
            /** @description Maximum number of iterations of a loop, or of steps of a graph. Otherwise absent. */
            count?: string | null;
            /** @description Timeout of an action or block. Absent without a timeout. */
            deadline?: string | null;
            /** @description Delay between two iterations: `every 5s`. Absent without a delay. */
            delay?: string | null;
            /** @description Retry policy, as text. Absent without a policy of its own. */
            retry?: string | null;
            /** @description Timeout of a loop. Absent without a timeout. */
            timeout?: string | null;
        };
        /** @description A type of node that can be added. */
        NodeType: {
            /** @description Description of what such a node does. */
            description: string;
            /** @description Display name of the type. */
            title: string;
            /** @description Type, as files have it. */
            type: string;
            /** @description Smallest valid node of the type, without its name. */
            value: Json;
        };
        /** @description An event of a run, with its number. */
        NumberedEvent: components["schemas"]["HistoryEvent"] & {
            /**
             * Format: int64
             * @description Number of the event in the run, from 1.
             */
            sequence: number;
        };
        /** @description How a run ended. */
        OutcomeReport: {
            /** @description Time when the run ended. */
            at: components["schemas"]["Timestamp"];
            /** @description What its loops used of their limits `tokens` and `cost`. Absent without such limits. */
            budgets?: components["schemas"]["LoopBudget"][];
            error?: components["schemas"]["ErrorReport"] | null;
            /**
             * @description Operations that the run could not cancel at its end: their servers refused or did not answer. Absent if there
             *     are none.
             */
            failed_cancels?: components["schemas"]["FailedCancel"][];
            /** @description `on_failure` and `on_finish`, if they failed. Absent if neither failed. */
            failed_endings?: components["schemas"]["FailedEnding"][];
            /** @description Foreaches that continued after failed items (`on_error: continue`). Absent if there are none. */
            failed_items?: components["schemas"]["FailedItems"][];
            /** @description Loops that ended at a limit although the run succeeded. Absent if there are none. */
            limits?: components["schemas"]["LimitReached"][];
            /** @description Output of the run. If it did not succeed, the earlier answer of a `Response` action, else null. */
            output: Json;
            /** @description Final status: `Succeeded`, `Failed`, `TimedOut` or `Cancelled`. */
            status: components["schemas"]["Status"];
            /** @description Files that the run did not replace, because it did not succeed. Absent if there are none. */
            unreplaced?: components["schemas"]["Unreplaced"][];
        };
        /** @description The panel of a node: its fields, for a form. */
        Panel: {
            /** @description Possible commands: `rename`, `delete`, `add_before`, `add_after`, `add_inside`, `connect`, `move`, `drill`. */
            actions: string[];
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. */
            format: string;
            /** @description Type of the node, as the text has it. */
            kind: string;
            /** @description Path of the node. */
            node: string;
            /** @description JSON pointer to the node in the text. */
            pointer: string;
            /** @description Ports of all nodes in the same graph of a canvas. Absent for other formats. */
            ports?: components["schemas"]["PortOf"][];
            /** @description Fields of the node, in groups. */
            sections: components["schemas"]["Section"][];
            /** @description Display name of the node. */
            title: string;
        };
        /** @description A node of a text. */
        PanelOf: {
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. */
            dialect?: string | null;
            /** @description File name of the text. If absent, `workflow.yaml`. */
            file?: string | null;
            /** @description Further files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description Path of the node, as in the graph, or its name. */
            node: string;
            /** @description Text of the workflow, YAML or JSON. */
            text: string;
        };
        /** @description Possible parts of a condition. */
        Parts: {
            /** @description Operators that can compare them. */
            operator: components["schemas"]["Choice"][];
            /** @description Ports that can be compared, with their types. */
            output: components["schemas"]["Choice"][];
            /** @description Values to compare with, each with the type of port that it belongs to. */
            value: components["schemas"]["Choice"][];
        };
        /** @description Why a run is paused. */
        PauseReport: {
            limit?: components["schemas"]["LoopEnd"] | null;
            /** @description Path of the loop that reached a limit. Null for a requested pause. */
            loop?: string | null;
            /** @description Reason of the pause: `requested` by a user, or `limit`. */
            reason: string;
        };
        /** @description Time and reason of a pause. */
        PausedSince: components["schemas"]["PauseReport"] & {
            /** @description Time when the run paused. */
            since: components["schemas"]["Timestamp"];
        };
        /** @description A place that a run reached. */
        PlaceReport: {
            /** @description Path of the place, for `from` of a retry: `poll#14` or `poll#14/fetch`. */
            path: string;
            /** @description Type of the place: `iteration` or `action`. */
            type: string;
        };
        /** @description Places from which a run can be retried. */
        PlacesReport: {
            /**
             * @description Whether earlier places may be missing: the limit is reached, or the earlier steps are no longer stored one by
             *     one.
             */
            cut: boolean;
            /** @description Places, newest first. */
            places: components["schemas"]["PlaceReport"][];
            /** @description Id of the run. */
            run: string;
        };
        /** @description A port of a canvas node. */
        Port: {
            /** @description Name of the port. */
            name: string;
            /** @description Side of the port: `in` at the top of the node, or `out` at the bottom. */
            side: string;
            /**
             * Format: int64
             * @description Horizontal position in pixels.
             */
            x: number;
            /**
             * Format: int64
             * @description Vertical position in pixels.
             */
            y: number;
        };
        /** @description A port that may be connected. */
        PortOf: {
            /** @description Name of the port. */
            name: string;
            /** @description Path of its node. */
            node: string;
            /** @description Side of the port: `in` or `out`. */
            side: string;
            /** @description Type of the port: `string`, `number`, … */
            type: string;
        };
        /** @description A position in a text, as editors count it. */
        Position: {
            /**
             * Format: int32
             * @description Position in the line, from 0, in UTF-16 code units.
             */
            character: number;
            /**
             * Format: int32
             * @description Line, from 0.
             */
            line: number;
        };
        /** @description A line that a command printed. */
        PrintedLine: {
            /** @description Name of the action. */
            action: string;
            /** @description Stream of the line: `stdout` or `stderr`. */
            stream: string;
            /** @description Text of the line, without its line break. */
            text: string;
        };
        /** @description Recent output of the running commands of a run. */
        PrintedReport: {
            /** @description Last lines of each running command, in order. */
            lines: components["schemas"]["PrintedLine"][];
        };
        /** @description Problem details of an error (RFC 9457). */
        Problem: {
            current?: components["schemas"]["CurrentWorkflow"] | null;
            /** @description Message about this occurrence. */
            detail: string;
            /** @description All errors and warnings of a refused workflow, with their positions. Absent for other errors. */
            diagnostics?: components["schemas"]["DiagnosticReport"][];
            state?: components["schemas"]["StateReport"] | null;
            /**
             * Format: int32
             * @description HTTP status of the response.
             */
            status: number;
            /** @description Short description of the type. */
            title: string;
            /** @description Type of the error: `urn:windlass:` and a stable word such as `unknown-run` or `refused-workflow`. */
            type: string;
        };
        /** @enum {string} */
        Progress: "Running" | "Succeeded" | "Failed" | "Skipped" | "TimedOut" | "Cancelled";
        /**
         * @description Which ended runs are deleted: those that all of these conditions select. At least one of `older_than`, `keep`,
         *     `labels` and `status` is needed.
         */
        PruneRuns: {
            /** @description Deletes nothing, and returns what would be deleted. */
            dry_run?: boolean;
            /** @description Number of newest runs of each workflow that are not deleted. */
            keep?: number | null;
            /** @description Only runs with all of these labels. */
            labels?: {
                [key: string]: string;
            };
            /** @description Only runs that ended longer ago than this ISO 8601 duration. */
            older_than?: string | null;
            /** @description Only runs with one of these statuses. `SucceededWithFailures` selects succeeded runs in which actions failed. */
            status?: string[];
            /** @description Only runs of this workflow, or of one of several, with commas. */
            workflow?: string | null;
        };
        /** @description Result of a prune. */
        Pruned: {
            /** @description Whether nothing was deleted. */
            dry_run: boolean;
            /**
             * Format: int64
             * @description Number of workflow versions that were deleted because no run uses them any more.
             */
            programs: number;
            /** @description Ids of the deleted runs, or with `dry_run` of the runs that would be deleted. */
            runs: string[];
        };
        /** @description A question to people, whose answer is a signal. */
        QuestionReport: {
            /** @description Possible choices. The answer has one of them as `choice`. Empty if it needs none. */
            choices: string[];
            /** @description Fields of the form: the other members of the answer. */
            fields: components["schemas"]["FormField"][];
            /** @description JSON Schema of these members. Absent if the question has no fields. */
            schema?: Record<string, Json> | null;
            /** @description Text of the question. Null if it has none, and while the run does not wait for the answer. */
            title?: string | null;
        };
        /** @description Position of a call in the queue of its host. Calls queue for its rate limit, or because the host is down. */
        RateLimitWait: {
            /** @description Expected time when the call starts. */
            begins_at: components["schemas"]["Timestamp"];
            /**
             * Format: int32
             * @description Number of consecutive failed calls to the host, if it counts as down; then one call at a time tries it.
             *     Otherwise absent.
             */
            failures?: number | null;
            /** @description Host with its port, or the name that the action has as `rate`. */
            host: string;
            /** @description Position in the queue, from 1. */
            position: number;
        };
        /** @description One value that a condition reads. */
        Read: {
            /** @description Name of the variable, or text of the part of the expression. */
            name: string;
            /** @description Current value. */
            value: Json;
        };
        /** @description Result of resuming all runs. */
        Resumed: {
            /** @description Ids of the resumed runs. */
            runs: string[];
        };
        /** @description Options of a retry. */
        RetryRun: {
            /**
             * @description Action or iteration from which the new run continues, with the state at that time: `fetch`, `poll#14`,
             *     `poll#14/fetch`; `failed`: the action that the run failed at; `failed-items`: the failed items of the only
             *     foreach that had any; `failed-items/PATH`: those of this foreach. If absent, the new run starts at the
             *     beginning.
             */
            from?: string | null;
            /** @description As for a start. */
            request_id?: string | null;
            /** @description Id of the new run. If absent, an id is made from the workflow's name. */
            run?: string | null;
        };
        /** @description Current activity of a run in a list. */
        RunDetail: {
            error?: components["schemas"]["ErrorReport"] | null;
            loop?: components["schemas"]["LoopCell"] | null;
            pause?: components["schemas"]["PausedSince"] | null;
            waits_for?: components["schemas"]["CurrentActivity"] | null;
        };
        /** @description One run in a list. */
        RunRow: components["schemas"]["RunSummary"] & components["schemas"]["RunDetail"];
        /** @description Status of a run. */
        RunState: {
            /** @description Id of the run. */
            run: string;
            /** @description Status of the run. */
            status: components["schemas"]["RunStatus"];
        };
        /** @enum {string} */
        RunStatus: "Running" | "Waiting" | "Paused" | "Succeeded" | "Failed" | "TimedOut" | "Cancelled";
        /** @description One run, as `list` shows it. */
        RunSummary: {
            /**
             * Format: int64
             * @description Number of commits of the run.
             */
            commit: number;
            /**
             * Format: int64
             * @description Number of actions that failed without failing the run, because their failures were handled. Absent if it is 0.
             */
            failed_actions?: number;
            /** @description Labels of the run, by name. */
            labels: {
                [key: string]: string;
            };
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /** @description Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            program: string;
            /** @description Id of the run. */
            run: string;
            /** @description Time when the run was started. */
            started_at: components["schemas"]["Timestamp"];
            /** @description Status of the run. */
            status: components["schemas"]["RunStatus"];
            /** @description Time of its last commit. */
            updated_at: components["schemas"]["Timestamp"];
            /** @description Name of the workflow. */
            workflow: string;
        };
        /** @description The schedule of a workflow, with its next times. Without a schedule, it has only `next`, `missed_times` and `last`. */
        ScheduleReport: {
            /** @description Why the schedule starts no runs now, such as a permission that the server lacks. Absent if it can start them. */
            cannot_start?: string | null;
            /** @description Id of the last run that the schedule started. Absent if it started none. */
            last?: string | null;
            last_missed?: components["schemas"]["Timestamp"] | null;
            /** @description What happens with times while no server ran: `skip`, `run_once` or `run_all`. Absent without a schedule. */
            missed?: string | null;
            /**
             * Format: int64
             * @description Number of times that were missed and have no run.
             */
            missed_times: number;
            /** @description Next five times. Empty while the schedule is paused. */
            next: components["schemas"]["Timestamp"][];
            /**
             * @description What happens at a time while an earlier run has not ended: `skip`, `queue`, `allow` or `replace`. Absent without
             *     a schedule.
             */
            overlap?: string | null;
            paused_since?: components["schemas"]["Timestamp"] | null;
            /** @description Cron pattern, or description of the recurrence. Absent without a schedule. */
            schedule?: string | null;
            /** @description Time zone of the schedule; `UTC` if the workflow names none. Absent without a schedule. */
            timezone?: string | null;
        };
        /** @description A past time of a schedule. */
        ScheduledTime: {
            /** @description Id that the run of this time has, or would have. */
            run: string;
            status?: components["schemas"]["RunStatus"] | null;
            time: components["schemas"]["Timestamp"];
        };
        /** @description Past times of a schedule. */
        ScheduledTimes: {
            times: components["schemas"]["ScheduledTime"][];
        };
        /** @description A group of fields. */
        Section: {
            /** @description Fields of the group. */
            fields: components["schemas"]["Field"][];
            /** @description Title of the group. */
            title: string;
        };
        /** @description A signal for a run. */
        Signal: {
            /**
             * @description Id that the sender chooses, so that the signal can be sent again: the run receives a repeated signal once.
             *     Another signal with the id is refused (422, `key-reused`). May be absent.
             */
            id?: string | null;
            /** @description Name of the signal. */
            name: string;
            /** @description Payload of the signal. */
            payload?: Json;
            /**
             * Format: int64
             * @description Value of `received` of the wait that the signal answers. If that wait is over, the signal is refused. If absent,
             *     the signal is stored for the next wait.
             */
            received?: number | null;
        };
        /** @description The files of a run, as they were when it was started. */
        SourceReport: {
            /** @description Format of the workflow: `loom`, `azure`, `tea` or `canvas`. */
            dialect: string;
            /** @description Files of the run: the workflow first, then the files that it names. */
            files: components["schemas"]["FileReport"][];
            /** @description Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            program: string;
            /** @description Id of the run. */
            run: string;
        };
        /** @description A run to start, of a stored workflow (`workflow`) or of a workflow in the request (`text`). */
        StartRun: {
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. Only with `text`. */
            dialect?: string | null;
            /** @description File name of the text, for diagnostics. Only with `text`. */
            file?: string | null;
            /** @description Further files that the text names. Only with `text`. */
            files?: components["schemas"]["FileText"][];
            /** @description Input of the run. If null or absent, the `input` of `stubs`, if they have one. */
            input?: Json;
            /** @description Labels of the run, by name. */
            labels?: {
                [key: string]: string;
            };
            /**
             * @description Id of this request, chosen by the caller. The request can then be repeated: if it has already started `run`, it
             *     succeeds again. Another request with the id is refused (422, `key-reused`).
             */
            request_id?: string | null;
            /** @description Id of the run. If absent, an id is made from the workflow's name. */
            run?: string | null;
            scheduled_time?: components["schemas"]["Timestamp"] | null;
            /**
             * @description Stubs that answer for handlers, connectors and actions of the text, in the form that `POST /v1/language/stubs`
             *     returns. Only with `text`. Stubs are not stored: after a restart of the server, the run continues without them.
             */
            stubs?: Record<string, Json> | null;
            /** @description Text of a workflow, YAML or JSON, instead of `workflow`. */
            text?: string | null;
            /** @description Name of a stored workflow. */
            workflow?: string | null;
        };
        StartRunOrWorkflow: components["schemas"]["StartRun"] | {
            [key: string]: Json;
        };
        /** @description Values that workflows store between their runs. */
        StateList: {
            /** @description Values, sorted by workflow and name. */
            values: components["schemas"]["StateReport"][];
        };
        /** @description A value that a workflow stores between its runs. */
        StateReport: {
            /** @description Whether the value belongs to guest workflows, which are received over TCP. */
            guest: boolean;
            /** @description Idempotency key of the action that wrote the value. Absent if no action did. */
            key?: string | null;
            /** @description Name of the value. */
            name: string;
            /** @description Id of the run that wrote the value. Absent if a person wrote it. */
            run?: string | null;
            /** @description Why no saved workflow reads the value. Only in the answer to a write. */
            unread?: string | null;
            value: Json;
            /**
             * Format: int64
             * @description Number of times that the value was written.
             */
            version: number;
            /** @description Name of the workflow, as its runs have it. */
            workflow: string;
            /** @description Time of the last write. */
            written_at: components["schemas"]["Timestamp"];
        };
        /** @description New value that a workflow stores between its runs. */
        StateValue: {
            /** @description Writes only if this value is stored. Not together with `if_version`. */
            expect?: Json;
            /**
             * Format: int64
             * @description Writes only if the stored value has this version (0: never written, or deleted). Not together with `expect`.
             */
            if_version?: number | null;
            /** @description The new value. */
            value: Json;
        };
        /** @enum {string} */
        Status: "Succeeded" | "Failed" | "Skipped" | "TimedOut" | "Cancelled";
        /** @description Everything that `status` shows of one run. */
        StatusReport: {
            /** @description Time when this report was made. */
            at: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description Number of commits of the run. All of them are durable.
             */
            commit: number;
            /** @description Format of the workflow: `loom`, `azure`, `tea` or `canvas`. Null if the files cannot be read. */
            dialect?: string | null;
            /** @description Current activity of each branch. */
            doing: components["schemas"]["CurrentActivity"][];
            /**
             * Format: int64
             * @description Number of actions that failed without failing the run, because their failures were handled. Absent if it is 0.
             */
            failed_actions?: number;
            /** @description Path of the workflow file, as the start named it. Null if the files cannot be read. */
            file?: string | null;
            /** @description Foreaches, parallels and graphs of actions that the run is in, outermost first. */
            forks: components["schemas"]["ForkReport"][];
            /** @description Labels of the run, by name. */
            labels: {
                [key: string]: string;
            };
            /** @description Loops that the run is in, outermost first. */
            loops: components["schemas"]["LoopReport"][];
            next_due_at?: components["schemas"]["Timestamp"] | null;
            /**
             * @description Reason why the store accepts no writes. Until it does, no run continues; writes are tried again automatically.
             *     Absent if the store accepts writes.
             */
            outage?: string | null;
            outcome?: components["schemas"]["OutcomeReport"] | null;
            /** @description Whether a process executes the run. That process owns the store, and started, resumed or recovered the run. */
            owned: boolean;
            pause?: components["schemas"]["PausedSince"] | null;
            /** @description Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            program: string;
            /** @description Id of the run. */
            run: string;
            /** @description Time when the run was started. */
            started_at: components["schemas"]["Timestamp"];
            /**
             * @description Whether the workflow starts runs of other workflows. They have the label `windlass.parent` with the id of this
             *     run. Absent if false.
             */
            starts_runs?: boolean;
            /** @description Status of the run. */
            status: components["schemas"]["RunStatus"];
            /** @description Time of its last commit. */
            updated_at: components["schemas"]["Timestamp"];
            /** @description Name of the workflow. */
            workflow: string;
        };
        /**
         * @description Why a run does not continue until it is resumed: it is `paused`, it is `parked` (the label `windlass.parked` has the
         *     reason), or it is `left` because no process executes it.
         * @enum {string}
         */
        Stop: "paused" | "parked" | "left";
        /**
         * @description How much of an iteration is stored: `whole` with its variables, `row` with its result, `summary` only with its
         *     status and its times.
         * @enum {string}
         */
        StoredDetail: "whole" | "row" | "summary";
        /** @description A group of consecutive iterations, with their counts and durations. */
        StripCell: components["schemas"]["Totals"] & {
            /**
             * @description Value of the condition before the iteration, if each cell is one iteration and the loop checks its condition
             *     first. Otherwise absent.
             */
            condition?: boolean | null;
            /**
             * Format: int64
             * @description Number of the first iteration of the cell, from 0.
             */
            from: number;
            /**
             * Format: int64
             * @description Longest duration of an iteration in milliseconds. Absent if no iteration of the cell is stored.
             */
            max_ms?: number | null;
            /**
             * Format: int64
             * @description Mean duration of the iterations in milliseconds. Absent if no iteration of the cell is stored.
             */
            mean_ms?: number | null;
            /**
             * Format: int64
             * @description Shortest duration of an iteration in milliseconds. Absent if no iteration of the cell is stored.
             */
            min_ms?: number | null;
            /**
             * Format: int64
             * @description Number of the iteration after the last one of the cell.
             */
            to: number;
        };
        /** @description How the iterations of a loop ended, as counts in cells. */
        StripReport: {
            /** @description What the loop's actions used of its limits `tokens` and `cost`. Absent without such limits. */
            budgets?: components["schemas"]["BudgetReport"][];
            /** @description Cells of the reported range. Their counts add up to `totals`. */
            cells: components["schemas"]["StripCell"][];
            /** @description Whether each cell is one iteration. */
            exact: boolean;
            /** @description Numbers, from 0, of the iterations that failed or timed out: the first 1,000 of the reported range. */
            failed: number[];
            /** @description Whether more than these 1,000 iterations failed or timed out. */
            failed_more: boolean;
            /**
             * Format: int64
             * @description Number of iterations in the reported range that are no longer stored.
             */
            forgotten: number;
            /**
             * Format: int64
             * @description Number of the first reported iteration, from 0.
             */
            from: number;
            /**
             * Format: int64
             * @description Number of iterations that have ended, including those that are no longer stored. Of a foreach, the highest index of an
             *     ended item, plus 1.
             */
            iterations: number;
            /** @description Path of the loop: `outer#2/inner`. */
            loop: string;
            /**
             * Format: int64
             * @description Maximum number of iterations. Of a running foreach, the number of its items; absent if the foreach has ended.
             */
            max_iterations?: number | null;
            /**
             * @description Messages of the failures, the most frequent first; at most 20. Includes iterations that succeeded although an
             *     item or an action failed.
             */
            messages: components["schemas"]["FailureCount"][];
            /** @description Id of the run. */
            run: string;
            /** @description Whether an iteration is running. */
            running: boolean;
            /** @description Display name, if it differs from the name. Otherwise absent. */
            title?: string | null;
            /**
             * Format: int64
             * @description Number of the iteration after the last reported one.
             */
            to: number;
            /** @description Counts of all stored iterations in the reported range. */
            totals: components["schemas"]["Totals"];
            /** @description Type of the loop, as its file has it: `until`, `foreach`, … */
            type: string;
        };
        /** @description Stubs for a text. */
        Stubs: {
            /** @description Answer of each action that needs one, by action, and the values that a definition needs. */
            stubs: Record<string, Json>;
            /** @description The stubs as the text of a file, as `validate --write-stubs` writes it. */
            text: string;
        };
        /** @description An action or node of a text. */
        Symbol: {
            /** @description Actions and nodes inside of it. */
            children: components["schemas"]["Symbol"][];
            /** @description Kind of its node in a graph: `action`, `loop`, `foreach`, `if`, … */
            kind: string;
            /** @description Name of the action or node. */
            name: string;
            /** @description Path of its node in a graph. */
            path: string;
            /** @description Range of the whole action or node. */
            range: components["schemas"]["TextRange"];
            /** @description Range of its name. */
            selection: components["schemas"]["TextRange"];
            /** @description Type, as the text has it. */
            type: string;
        };
        /** @description The actions and nodes of a text. */
        Symbols: {
            /** @description Actions and nodes at the top. The others are in their `children`. */
            symbols: components["schemas"]["Symbol"][];
        };
        /** @description A condition to test in a loop of a run. */
        TestOf: {
            /** @description Condition as its format has it: a text or an object. */
            condition: Json;
            /** @description Path of the loop: `poll`, `outer#2/inner`. */
            loop: string;
            /**
             * @description Value of the condition that ends the loop. If absent, false for loops that repeat while their condition is true,
             *     else true.
             */
            stops_when?: boolean | null;
        };
        /** @description Value of a condition in one iteration. */
        TestedIteration: {
            /**
             * Format: int64
             * @description Number of the iteration, from 0.
             */
            iteration: number;
            /** @description Value of the condition. Null if its evaluation failed. */
            value?: boolean | null;
            /** @description Values that the condition reads, by name. Empty for a condition that is an object. */
            values: {
                [key: string]: Json;
            };
        };
        /** @description Replacement of one range of a text. */
        TextEdit: {
            /** @description New text of the range. */
            new_text: string;
            /** @description Range that is replaced. */
            range: components["schemas"]["TextRange"];
        };
        /** @description A position in the text of a workflow. */
        TextPlace: {
            /** @description Position in the text. */
            at: components["schemas"]["Position"];
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. */
            dialect?: string | null;
            /** @description File name of the text. If absent, `workflow.yaml`. */
            file?: string | null;
            /** @description Further files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description Path of an iteration of the run: `outer#2/inner#7`. Only together with `run`. */
            iteration?: string | null;
            /** @description Id of a run whose values a hover shows. Only together with `iteration`. */
            run?: string | null;
            /** @description Text of the workflow, YAML or JSON. It may have errors. */
            text: string;
        };
        /** @description A range of a text. */
        TextRange: {
            /** @description Position after the range. */
            end: components["schemas"]["Position"];
            /** @description First position of the range. */
            start: components["schemas"]["Position"];
        };
        /** Format: date-time */
        Timestamp: string;
        /** @description Numbers of iterations, by how they ended. */
        Totals: {
            /**
             * Format: int64
             * @description Number of iterations that were cancelled.
             */
            cancelled: number;
            /**
             * Format: int64
             * @description Number of iterations that failed.
             */
            failed: number;
            /**
             * Format: int64
             * @description Number of iterations, of any status, in which an action had more than one attempt.
             */
            retried: number;
            /**
             * Format: int64
             * @description Number of iterations that were skipped.
             */
            skipped: number;
            /**
             * Format: int64
             * @description Number of iterations that succeeded, also with handled failures.
             */
            succeeded: number;
            /**
             * Format: int64
             * @description Number of succeeded iterations in which an action failed and the failure was handled.
             */
            succeeded_with_failures: number;
            /**
             * Format: int64
             * @description Number of iterations that timed out.
             */
            timed_out: number;
        };
        /** @description Result of a dry run of an action. Nothing was sent. */
        Tried: {
            /** @description Message of its failure. Absent if it does not fail. */
            error?: string | null;
            /**
             * @description Request that the action would send, as `executor` and `inputs`. Secrets are masked. Absent if the action sends
             *     none.
             */
            request?: Json;
            /** @description Result of an action that sends nothing. Otherwise absent. */
            result?: Json;
        };
        /** @description An action of a text, with the values that it reads. */
        TryOf: {
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. */
            dialect?: string | null;
            /** @description File name of the text. If absent, `workflow.yaml`. */
            file?: string | null;
            /** @description Further files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description Inputs of the run, by name. They have precedence over those of `run`. */
            inputs?: Record<string, Json> | null;
            /** @description Path of an iteration of the run: `outer#2/inner#7`. Only together with `run`. */
            iteration?: string | null;
            /** @description Path of the action, as in the graph, or its name. */
            node: string;
            /** @description Outputs of other actions, by action. They have precedence over those of the iteration. */
            outputs?: Record<string, Json> | null;
            /** @description Id of a run whose values the action reads. Only together with `iteration`. */
            run?: string | null;
            /** @description Text of the workflow, YAML or JSON. */
            text: string;
            /** @description Variables, by name. They have precedence over those of the iteration. */
            variables?: Record<string, Json> | null;
        };
        /** @description The node types of a format. */
        Types: {
            /** @description Types of nodes that can be added. */
            types: components["schemas"]["NodeType"][];
        };
        /** @description A format. */
        TypesOf: {
            /** @description Name of the format: `loom`, `azure`, `tea` or `canvas`. */
            dialect: string;
        };
        /** @description A file that a run should have replaced, and did not. */
        Unreplaced: {
            /** @description Path of the file. */
            file: string;
            /** @description Path of the file with the new rows. */
            new: string;
        };
        /** @description Result of a check of a workflow. */
        Validation: {
            /** @description Errors and warnings. */
            diagnostics: components["schemas"]["DiagnosticReport"][];
            /** @description Format of the workflow. Absent if it cannot be detected. */
            dialect?: string | null;
            graph?: components["schemas"]["Graph"] | null;
            /** @description Inputs of the workflow. Empty if it cannot be compiled. */
            inputs: components["schemas"]["InputReport"][];
            /** @description Limits of its loops. Empty if the workflow cannot be compiled. */
            loops: components["schemas"]["LoopLimits"][];
            /** @description Whether the workflow is valid: it has no errors. */
            valid: boolean;
        };
        /** @description One version of a stored workflow. */
        VersionReport: {
            /** @description Whether this is the current version, which new runs use. */
            current: boolean;
            /** @description Number of stored runs of this version, by status. */
            runs: {
                [key: string]: number;
            };
            /** @description Time when this version was stored. */
            stored_at: components["schemas"]["Timestamp"];
            /** @description SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            version: string;
        };
        /** @description The versions of a stored workflow. */
        VersionsReport: {
            /** @description Versions, newest first: the current one, and at most 50 former ones. */
            versions: components["schemas"]["VersionReport"][];
        };
        /** @description A period in which an iteration only waited. */
        WaitReport: {
            /** @description Time when the wait began. */
            from: components["schemas"]["Timestamp"];
            /** @description Reason of the wait: `delay` before the iteration, `retry` between two attempts, or `sleep`. */
            kind: string;
            /** @description Time when the wait ended, or is due to end. */
            to: components["schemas"]["Timestamp"];
        };
        /**
         * @description Where a new node is added: before a node, after it, or inside of it at the end.
         * @enum {string}
         */
        Where: "before" | "after" | "inside";
        /** @description A page of stored workflows. */
        WorkflowList: {
            /** @description Value for `after` of the next page, which may be empty. Null if this page is not full. */
            next?: string | null;
            /** @description Workflows, sorted by name. */
            workflows: components["schemas"]["WorkflowSummary"][];
        };
        /** @description A stored workflow with its inputs, and the limits of its loops. */
        WorkflowReport: {
            /** @description Format of the workflow: `loom`, `azure`, `tea` or `canvas`. */
            dialect: string;
            /** @description Files of the workflow: its own file first, then the files that it names. */
            files: components["schemas"]["FileReport"][];
            /** @description Inputs of the workflow. */
            inputs: components["schemas"]["InputReport"][];
            /** @description Limits of its loops, in the order of the file. */
            loops: components["schemas"]["LoopLimits"][];
            /** @description Name under which the workflow is stored. */
            name: string;
            /** @description Version of the workflow: the SHA-256 of its files and format, as `sha256:` and 64 hexadecimal digits. */
            program: string;
            /** @description Time when this version was stored. */
            stored_at: components["schemas"]["Timestamp"];
            /** @description Name that the file declares, else the name from the file's path. */
            title: string;
            /** @description Warnings about the workflow. They do not prevent its runs. */
            warnings: components["schemas"]["DiagnosticReport"][];
        };
        /** @description One stored workflow in a list. */
        WorkflowSummary: {
            /** @description Format of the workflow: `loom`, `azure`, `tea` or `canvas`. */
            dialect: string;
            /** @description Path of its file, as the request named it. */
            file: string;
            /** @description Name under which the workflow is stored. */
            name: string;
            /** @description Time when this version was stored. */
            stored_at: components["schemas"]["Timestamp"];
        };
        /** @description A workflow in a request. */
        WorkflowText: {
            /** @description Format of the text: `loom`, `azure`, `tea` or `canvas`. If absent, it is detected. */
            dialect?: string | null;
            /** @description File name of the text, for diagnostics. If absent, a name such as `workflow.yaml`. */
            file?: string | null;
            /** @description Further files that the text names. */
            files?: components["schemas"]["FileText"][];
            /** @description Text of the workflow, YAML or JSON. */
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
                /** @description Only entries of the token or Unix user with this name. */
                name?: string;
                /** @description Only entries of this command: `start`, `pause`, `put-workflow`, … */
                action?: string;
                /** @description Only entries with this target: a run, a workflow, or WORKFLOW/NAME of a value. */
                target?: string;
                /** @description Only entries at this time (RFC 3339) or later. */
                since?: components["schemas"]["Timestamp"];
                /** @description Maximum number of entries: 100 by default, at most 10000. */
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
                /** @description Number of signals of the name that the run had received, or stopped waiting for, when the address was made. */
                received: number;
                /** @description Time when the address expires, in milliseconds since 1970-01-01T00:00:00Z. */
                expires: number;
                /** @description Signature of the address. */
                signature: string;
            };
            header?: never;
            path: {
                /** @description Run id */
                run: string;
                /** @description Name of the signal */
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
                /** @description Number of signals of the name that the run had received, or stopped waiting for, when the address was made. */
                received: number;
                /** @description Time when the address expires, in milliseconds since 1970-01-01T00:00:00Z. */
                expires: number;
                /** @description Signature of the address. */
                signature: string;
            };
            header?: never;
            path: {
                /** @description Run id */
                run: string;
                /** @description Name of the signal */
                signal: string;
            };
            cookie?: never;
        };
        /** @description Payload of the signal */
        requestBody?: {
            content: {
                "application/json": Record<string, unknown> | null;
            };
        };
        responses: {
            /** @description State of the run; the change is durable */
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
                /** @description Maximum number of last iterations of each run: 5 by default, at most 10000. */
                iterations?: number;
                /** @description Maximum number of runs: 20 by default, at most 200. */
                limit?: number;
                /** @description Only runs after this id: the last run of the page before. */
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
                 * @description Ids of runs whose rows and statuses are sent, separated by commas, at most 200. `*` or absent: the rows of all
                 *     runs. `*,RUN`: both.
                 */
                runs?: string;
                /** @description Maximum number of updates per second: 10 by default, from 0.1 to 60. */
                max_hz?: number;
                /** @description Id of the last received event, for clients that cannot send `Last-Event-ID`. */
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
        /** @description Payload that the run gets as `body` */
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
            /** @description 400 the body is not JSON, and the header says so, 401 another signature, 404 no workflow with a webhook, 422 refused input */
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
            /** @description The edited text, and the edits that lead to it */
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
            /** @description Text of the hover; null where nothing is known */
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
            /** @description Fields of the node */
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
            /** @description The schedule, with the next five times */
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
            /** @description Stubs for the calls of the workflow */
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
            /** @description Nodes of the text, as an outline */
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
            /** @description Result of the dry run */
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
            /** @description Types of nodes */
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
            /** @description What the token or the session of the caller allows */
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
                /** @description Whether paused runs are resumed, too: `false` by default. */
                paused?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Number of runs that continue */
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
                 * @description Only runs with these statuses, separated by commas: `Running`, `Waiting`, `Paused`, `Succeeded`,
                 *     `SucceededWithFailures` (actions failed), `Failed`, `TimedOut`, `Cancelled`.
                 */
                status?: string;
                /** @description Only runs of these workflows, separated by commas. */
                workflow?: string;
                /** @description Only runs whose ids begin with this text. */
                prefix?: string;
                /** @description Only runs with all of these labels, as NAME=TEXT, separated by commas. */
                label?: string;
                /** @description Only runs with this text in their id, their workflow or a label, ignoring case. */
                text?: string;
                /** @description Only runs that were started at this time (RFC 3339) or later. */
                since?: components["schemas"]["Timestamp"];
                /** @description Only runs that were started before this time (RFC 3339). */
                until?: components["schemas"]["Timestamp"];
                /**
                 * @description Only `Running` and `Waiting` runs that have not progressed since this time (RFC 3339), although they should
                 *     have.
                 */
                stuck_since?: components["schemas"]["Timestamp"];
                /** @description Only runs with these ids, separated by commas, at most 200. */
                runs?: string;
                /** @description Whether the response has counts by status, by workflow and by hour: `false` by default. */
                facets?: boolean;
                /**
                 * @description Whether the response has the current activity of each run: its loop, what it waits for, its error. `false` by
                 *     default.
                 */
                detail?: boolean;
                /** @description Number of the newest runs to skip: 0 by default. */
                offset?: number;
                /** @description Maximum number of runs: 50 by default, at most 1000. */
                limit?: number;
                /** @description Start of the page: `next` of the page before. */
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
                /** @description Key chosen by the caller, per workflow; a request with the same key returns the same run */
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
                    /** @description Run id */
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
            /** @description Runs for which the command succeeded, and runs for which it failed */
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
                /** @description Run id */
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
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description State of the run; the change is durable */
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
                /** @description Path of the first iteration: `poll#13`. */
                from: string;
                /** @description Path of the second iteration: `poll#14`. */
                to: string;
            };
            header?: never;
            path: {
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Paths at which the two iterations differ */
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
                /** @description Maximum number of last iterations: 5 by default, at most 10000. */
                iterations?: number;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /**
                 * @description Id of the last received event, for clients that cannot send `Last-Event-ID`. If absent or 0, all events are
                 *     sent.
                 */
                after?: string;
                /** @description Whether `history` events are sent: `true` by default. */
                history?: boolean;
            };
            header?: {
                /** @description The last event that the client received */
                "Last-Event-ID"?: string | null;
            };
            path: {
                /** @description Run id */
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
                /** @description Run id */
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
                 * @description Scopes that are drawn with their inside: `all` (the default), `none`, or ids or paths of nodes, separated by
                 *     commas.
                 */
                open?: string;
                /** @description Id or path of a node: the graph shows only its inside. If absent, the whole workflow. */
                root?: string;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Only iterations of the loop with this path, such as `outer#2/inner`, or with this name. */
                loop?: string;
                /** @description Maximum number of last iterations: 100 by default, at most 10000. */
                iterations?: number;
                /** @description Whether the response has events: `false` by default. */
                events?: boolean;
                /** @description Only events after the one with this number. */
                after?: number;
                /** @description Maximum number of events: 100 by default, at most 10000. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Path of the iteration: `poll#14`, `outer#2/inner#7`. If absent, what the run did outside of its loops. */
                path?: string;
                /**
                 * @description JSON pointer to one value of the iteration, which is returned complete: `/result`, `/variables/rows`,
                 *     `/actions/0/outputs`. If absent, the whole iteration.
                 */
                pointer?: string;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Path of the loop or foreach: `poll`, `outer#2/inner`. */
                loop: string;
                /** @description Number of the first iteration, from 0. If absent, 0. */
                from?: number;
                /** @description Number of the iteration after the last one. If absent, all that have ended. */
                to?: number;
                /**
                 * @description Only iterations with these statuses, separated by commas: `Succeeded`, `SucceededWithFailures` (an action
                 *     failed), `Failed`, `TimedOut`, `Cancelled`, `Skipped`.
                 */
                status?: string;
                /**
                 * @description Only iterations whose result differs from the one before at this JSON pointer, such as `/check/body/state`.
                 *     Empty: the whole result.
                 */
                changed?: string;
                /** @description Only iterations with this text in their result or error, ignoring case. */
                text?: string;
                /** @description Maximum number of iterations: 100 by default, at most 1000. */
                limit?: number;
                /** @description Order of the iterations: `asc` (oldest first, the default) or `desc`. */
                order?: string;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Run id */
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
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description State of the run; the change is durable */
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
                /** @description Maximum number of places: 100 by default, at most 10000. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Places from which the run can be retried */
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
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Output lines of the command */
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
                /** @description Maximum time to wait for the end of the run, in seconds: 0 by default, at most 60. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Run id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description State of the run; the change is durable */
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
                /** @description Run id */
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
                /** @description Run id */
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
            /** @description State of the run; the change is durable */
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
                /** @description Run id */
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
                /** @description Path of the loop or foreach: `poll`, `outer#2/inner`. */
                loop: string;
                /** @description Number of the first iteration, from 0. If absent, 0. */
                from?: number;
                /** @description Number of the iteration after the last one. If absent, all that have ended. */
                to?: number;
                /** @description Maximum number of cells: 400 by default, at most 10000. If there are enough cells, each iteration has its own. */
                buckets?: number;
            };
            header?: never;
            path: {
                /** @description Run id */
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
                /** @description Run id */
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
            /** @description Value of the condition in each iteration */
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
                /** @description Only values of this workflow. */
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
                /** @description Whether the value belongs to guest workflows, which have values of their own: `false` by default. */
                guest?: boolean;
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
            /** @description The stored value */
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
                /** @description Whether the value belongs to guest workflows, which have values of their own: `false` by default. */
                guest?: boolean;
                /** @description Change the value only if it has this version. */
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
            /** @description The stored value; it is durable */
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
                /** @description Whether the value belongs to guest workflows, which have values of their own: `false` by default. */
                guest?: boolean;
                /** @description Change the value only if it has this version. */
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
                /** @description Whether the result has the graph: `false` by default. */
                graph?: boolean;
                /**
                 * @description Scopes that are drawn with their inside: `all` (the default), `none`, or ids or paths of nodes, separated by
                 *     commas.
                 */
                open?: string;
                /** @description Id or path of a node: the graph shows only its inside. If absent, the whole workflow. */
                root?: string;
                /** @description Whether the workflow is checked with the rights of a guest, even if the caller has more: `false` by default. */
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
            /** @description Diagnostics of the text, empty if it is valid */
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
                /** @description Start of the page: `next` of the page before. */
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
                /** @description Version: its hash, or at least the first six digits of it. If absent, the current version. */
                version?: string;
            };
            header?: never;
            path: {
                /** @description Name of the workflow */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow */
            200: {
                headers: {
                    /** @description Version of the workflow */
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
                /** @description Name of the workflow: letters, digits and -_. */
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
            header?: {
                /** @description Only if this is the current version, as in `ETag` */
                "If-Match"?: string | null;
            };
            path: {
                /** @description Name of the workflow */
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
            /** @description 404: unknown workflow; 412: it has another version than `If-Match` */
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
                /** @description Name of the workflow */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schedule, with the next five times */
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
                /** @description Name of the workflow */
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
                /** @description Name of the workflow */
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
                /**
                 * @description Start of the range: a time (RFC 3339), or the beginning of a day in the time zone of the schedule
                 *     (`2026-11-01`).
                 */
                from: string;
                /** @description End of the range, exclusive: a time (RFC 3339), or the beginning of a day. If absent, now. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description Name of the workflow */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Due times, earliest first */
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
                /** @description Name of the workflow */
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
