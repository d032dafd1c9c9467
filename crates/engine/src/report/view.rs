//! A run as it is stored, with the names of its program.

use crate::scheduler::Queued;
use crate::{EngineError, Inspector};
use std::sync::Arc;
use windlass_actions::MASK;
use windlass_expression::{Value, replace_secret_marks};
use windlass_machine::program::{Action, ActionId, Program, Scope, ScopeId, State, StateId};
use windlass_machine::{Cursor, CursorId, Frame, RunState};
use windlass_source::source::Bundle;
use windlass_store::{ProgramSource, StoredRun};

/// A stored run, with what a report needs in addition.
pub(super) struct RunView {
    pub stored: StoredRun,
    /// Which calls of the run wait for a permit of a concurrency or rate limit.
    pub queued: Queued,
    /// The source of the program. `None` if it cannot be read: then a report has no names.
    pub source: Option<ProgramSource>,
    /// The compiled program. `None` if this version cannot compile the source.
    pub program: Option<Arc<Program>>,
}

impl RunView {
    pub fn load(inspector: &Inspector, run: &str) -> Result<Self, EngineError> {
        Ok(Self::of(inspector, inspector.load(run)?))
    }

    pub fn of(inspector: &Inspector, stored: StoredRun) -> Self {
        let hash = stored.header.program;
        let source = inspector.source(hash).ok();
        let program = source
            .as_ref()
            .and_then(|source| inspector.program(hash, source).ok());
        Self {
            queued: inspector.queued(&stored.header.id),
            stored,
            source,
            program,
        }
    }

    /// Makes the view of a run without its source, for reports that do not need the source.
    pub fn brief(inspector: &Inspector, stored: StoredRun) -> Self {
        Self {
            source: None,
            queued: inspector.queued(&stored.header.id),
            program: inspector.program_of(stored.header.program),
            stored,
        }
    }

    pub fn state(&self) -> &RunState {
        &self.stored.state
    }

    pub fn bundle(&self) -> Option<&Bundle> {
        self.source.as_ref().map(|source| &source.bundle)
    }

    /// Returns the path of the workflow file, as the start of the run named it.
    pub fn file(&self) -> Option<String> {
        Some(self.bundle()?.file(0)?.path.clone())
    }

    pub fn scope(&self, id: ScopeId) -> Option<&Scope> {
        self.program.as_ref()?.scope(id)
    }

    pub fn state_of(&self, id: StateId) -> Option<&State> {
        self.program.as_ref()?.state(id)
    }

    pub fn action(&self, id: ActionId) -> Option<&Action> {
        self.program.as_ref()?.action(id)
    }

    /// Returns the scope's name, or its number.
    pub fn scope_name(&self, id: ScopeId) -> String {
        self.scope(id)
            .map_or_else(|| id.to_string(), |scope| scope.name.to_string())
    }

    /// Returns the action's name, or its number.
    pub fn action_name(&self, id: ActionId) -> String {
        self.action(id)
            .map_or_else(|| id.to_string(), |action| action.name.to_string())
    }

    /// Returns a cursor (a thread of control) and the cursors that it was forked from, innermost first.
    pub fn lineage(&self, from: CursorId) -> impl Iterator<Item = (CursorId, &Cursor)> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let id = next?;
            let cursor = self.state().cursors.get(&id)?;
            next = cursor.forked_by(id);
            Some((id, &**cursor))
        })
    }

    /// Returns the frames (entered scopes) that enclose a cursor, innermost first.
    pub fn frames(&self, from: CursorId) -> impl Iterator<Item = &Frame> {
        self.lineage(from)
            .flat_map(|(_, cursor)| cursor.frames.iter().rev())
    }
}

/// Returns what a report shows of a value: placeholders of secrets are masked. All values of a run that leave the
/// process pass through this function.
#[must_use]
pub fn shown(value: &Value) -> Value {
    replace_secret_marks(value, &mut |_| Some(MASK.to_owned()))
}
