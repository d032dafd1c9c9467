//! Records of actions, and the reports of their ends to the history.

use super::RecordHandler;
use crate::bug::MachineResult;
use crate::change::Change;
use crate::event::HistoryKind;
use crate::program::{ActionId, Op};
use crate::record::Output;
use crate::state::CursorId;
use windlass_model::model::{Fault, Name, Status};
use windlass_value::time::Timestamp;

impl RecordHandler<'_, '_> {
    /// Records the end of an action. If `action` is `None`, does nothing.
    pub fn record(
        &mut self,
        cursor: CursorId,
        action: Option<ActionId>,
        status: Status,
        output: Output,
        error: Option<Fault>,
        started_at: Timestamp,
    ) -> MachineResult {
        let Some(action) = action else {
            return Ok(());
        };
        let read = self.read();
        let state = read.state_of(cursor)?;
        let calls = state.action == Some(action) && matches!(state.op, Op::Call(..));
        let secured = read.secured_parts(Some(action));
        // If the start of the action was reported, its end must be reported, too.
        if calls || !read.is_hidden(action) {
            self.report_end(cursor, action, status, error.as_ref());
        }
        let output = match output {
            Output::Value(value) if secured.inputs || secured.outputs => {
                Output::Value(value.secure())
            }
            output => output,
        };
        self.0.emit(Change::Recorded {
            owner: self.0.run.record_owner(cursor),
            action,
            status,
            output,
            error,
            started_at,
            at: self.0.now,
        })
    }

    pub fn report_end(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        error: Option<&Fault>,
    ) {
        // For a loop that succeeded, the `LoopEnd` event has already reported the end.
        let reported = |name: &Name| match self.0.out.history.last().map(|event| &event.what) {
            Some(HistoryKind::LoopEnd { node_name, .. }) => node_name == name,
            _ => false,
        };
        let name = self.read().history_name(Some(action));
        if let Some(name) = name.filter(|name| status != Status::Succeeded || !reported(name)) {
            let attempt = self.read().view(cursor).current_attempt();
            let error = error.map(|fault| fault.message.clone());
            self.report_end_of_attempt(cursor, name, attempt, status, error);
        }
    }

    pub fn report_end_of_attempt(
        &mut self,
        cursor: CursorId,
        node_name: Name,
        attempt: u32,
        status: Status,
        error: Option<String>,
    ) {
        let (path, iteration) = self.read().view(cursor).innermost_iteration().unzip();
        self.0.report(HistoryKind::ActionEnded {
            node_name,
            status,
            error,
            attempt,
            path,
            iteration,
        });
    }

    /// Changes the record of a call that had succeeded, because a follow-up (a step that is a part of the call) did not
    /// succeed.
    pub fn follow_up_ended(
        &mut self,
        cursor: CursorId,
        action: ActionId,
        status: Status,
        fault: Option<Fault>,
    ) -> MachineResult {
        let Some(record) = self.0.run.records_of(cursor)?.get(&action) else {
            return Ok(());
        };
        if status == Status::Succeeded || record.status != Status::Succeeded {
            return Ok(());
        }
        let (output, started_at) = (record.output.clone(), record.started_at);
        self.record(cursor, Some(action), status, output, fault, started_at)
    }
}
