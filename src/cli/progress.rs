//! Shows the progress of runs.
//! On a terminal, each active loop has a line that is redrawn. Elsewhere, nothing is shown without `-v`. With `-v`, a
//! line is printed for each iteration.

use super::format;
use super::output::Screen;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use windlass_engine::{ActionBegan, LoopState, TerminalText, Timestamp};

/// Maximum number of lines at a time.
const MAX_LINES: usize = 12;

/// The lines of all runs that are followed.
pub struct Progress {
    mode: Mode,
    /// The active loops, by run and by path of the loop.
    loops: BTreeMap<(String, String), LoopState>,
    /// The number of the last iteration of each loop that was shown, by run and by path.
    last_shown: BTreeMap<(String, String), u64>,
    /// The current action of each loop that has a title, by run and by path.
    doing: BTreeMap<(String, String), String>,
    screen: Screen,
    /// Whether each line begins with the id of its run.
    several: bool,
}

enum Mode {
    Nothing,
    Lines,
    Bars(MultiProgress, Vec<ProgressBar>),
}

impl Progress {
    /// Creates the lines for one run, or for several runs.
    pub fn new(screen: Screen, several: bool) -> Self {
        let mode = if screen.live {
            let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            Mode::Bars(bars, Vec::new())
        } else if screen.verbose > 0 {
            Mode::Lines
        } else {
            Mode::Nothing
        };
        Self {
            mode,
            loops: BTreeMap::new(),
            last_shown: BTreeMap::new(),
            doing: BTreeMap::new(),
            screen,
            several,
        }
    }

    /// Returns whether anything is shown while a run is unfinished.
    pub fn shows_steps(&self) -> bool {
        !matches!(self.mode, Mode::Nothing)
    }

    /// Returns whether lines are redrawn even if only time has passed.
    pub fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Bars(..))
    }

    /// Shows loops of a run that have changed, and actions in them that have begun.
    pub fn update(
        &mut self,
        run: &str,
        rows: Vec<LoopState>,
        began: Vec<ActionBegan>,
        now: Timestamp,
    ) {
        if matches!(self.mode, Mode::Nothing) {
            return;
        }
        for row in rows {
            let has_action = began.iter().any(|began| began.path == row.path);
            self.take(run, row, has_action, now);
        }
        for ActionBegan { path, action } in began {
            let key = (run.to_owned(), path);
            let Some(row) = self
                .loops
                .get(&key)
                .filter(|row| row.title.is_some())
                .cloned()
            else {
                continue;
            };
            self.doing.insert(key, action);
            if matches!(self.mode, Mode::Lines) {
                self.screen.say(self.line(run, &row, now));
            }
        }
        self.draw(now);
    }

    /// Shows a changed loop.
    /// If `has_action` is true, an action of the loop begins at the same time, and the action's line shows both.
    fn take(&mut self, run: &str, row: LoopState, has_action: bool, now: Timestamp) {
        // Loops inside of other iterations than the current one are over, even if their end was not reported.
        let inside = format!("{}#", row.path);
        let current = format!("{}#{}/", row.path, row.iteration);
        let ended = row.ended.is_some();
        self.loops.retain(|(of, path), _| {
            of != run || !path.starts_with(&inside) || (!ended && path.starts_with(&current))
        });
        let key = (run.to_owned(), row.path.clone());
        if row.iteration_started_at.is_none() {
            self.doing.remove(&key);
        }
        let is_shown_later = has_action && row.title.is_some() && !ended;
        if matches!(self.mode, Mode::Lines) && !is_shown_later {
            self.show_loop(&key, &row, now);
        }
        if ended {
            self.loops.remove(&key);
        } else {
            self.loops.insert(key, row);
        }
    }

    fn show_loop(&mut self, key: &(String, String), row: &LoopState, now: Timestamp) {
        let number = number(row);
        if row.ended.is_none() && self.last_shown.insert(key.clone(), number) == Some(number) {
            return;
        }
        self.screen.say(self.line(&key.0, row, now));
    }

    /// Returns the line of a loop: `wait_for_job  iteration 15/500  next check in 8s  deadline in 5h12m`, or `Code
    /// Review Loop  iteration 3/5  reviewer`.
    fn line(&self, run: &str, row: &LoopState, now: Timestamp) -> TerminalText {
        let mut parts = Vec::new();
        if self.several {
            parts.push(run.to_owned());
        }
        parts.push(match &row.title {
            // If the loop is inside of another loop, the iteration of the outer loop is shown, too.
            Some(title) => match row.path.rsplit_once('/') {
                Some((around, _)) => format!("{around}/{title}"),
                None => title.to_string(),
            },
            None => row.path.clone(),
        });
        parts.push(format!("iteration {}/{}", number(row), row.max_iterations));
        parts.extend(row.budgets().map(|budget| budget.text()));
        match (row.ended, row.next_due_at) {
            (Some(end), _) => parts.push(format!("ended: {}", end.as_str())),
            (None, Some(due)) => parts.push(format!("next check {}", format::until(due, now))),
            (None, None) => {}
        }
        let doing = self.doing.get(&(run.to_owned(), row.path.clone()));
        parts.extend(doing.filter(|_| row.ended.is_none()).cloned());
        if let (None, Some(deadline)) = (row.ended, row.deadline) {
            parts.push(format!("deadline {}", format::until(deadline, now)));
        }
        TerminalText::from(parts.join("  "))
    }

    /// Redraws the lines because time has passed.
    pub fn draw(&mut self, now: Timestamp) {
        let Mode::Bars(..) = self.mode else { return };
        let mut rows: Vec<_> = self.loops.iter().collect();
        rows.sort_by_key(|(key, row)| (&key.0, row.started_at, &key.1));
        let more = rows.len().saturating_sub(MAX_LINES);
        let mut lines: Vec<TerminalText> = rows
            .iter()
            .take(MAX_LINES)
            .map(|((run, _), row)| self.line(run, row, now))
            .collect();
        if more > 0 {
            lines.push(TerminalText::from(format!("… and {more} more loops")));
        }
        let Mode::Bars(all, bars) = &mut self.mode else {
            return;
        };
        while bars.len() > lines.len() {
            if let Some(bar) = bars.pop() {
                bar.finish_and_clear();
                all.remove(&bar);
            }
        }
        while bars.len() < lines.len() {
            bars.push(all.add(spinner()));
        }
        for (bar, line) in bars.iter().zip(lines) {
            bar.set_message(line.to_string());
            bar.tick();
        }
    }

    /// Prints a line on standard error that stays there, in contrast to those that are redrawn.
    pub fn say(&self, text: impl Into<TerminalText>) {
        let text = text.into();
        match &self.mode {
            Mode::Bars(all, bars) if !bars.is_empty() => {
                let _ = all.println(&*text);
            }
            _ => self.screen.say(text),
        }
    }

    /// Removes the lines of a run that has ended.
    pub fn forget(&mut self, run: &str, now: Timestamp) {
        self.loops.retain(|(of, _), _| of != run);
        self.last_shown.retain(|(of, _), _| of != run);
        self.doing.retain(|(of, _), _| of != run);
        self.draw(now);
    }

    /// Removes all lines, before a result is printed or the process exits.
    pub fn clear(&mut self) {
        self.loops.clear();
        if let Mode::Bars(all, bars) = &mut self.mode {
            bars.drain(..).for_each(|bar| bar.finish_and_clear());
            let _ = all.clear();
        }
    }
}

/// Returns the number, from 1, of the current iteration. If the loop has ended, of its last iteration.
fn number(row: &LoopState) -> u64 {
    let running = u64::from(row.iteration_started_at.is_some());
    row.iteration.saturating_add(running)
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // If the template is not valid, the default template is used.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}
