//! Describes waits and limits in words.

use super::{Backoff, Delay, Unchanged};
use windlass_value::time::{human_duration, shown_duration};

impl Backoff {
    /// Describes the waits, in words.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Fixed { interval, .. } => format!("every {}", human_duration(*interval)),
            Self::Exponential { interval, max, .. }
            | Self::AzureExponential { interval, max, .. } => format!(
                "after {}, doubling up to {}",
                human_duration(*interval),
                human_duration(*max)
            ),
        }
    }
}

impl Delay {
    /// Describes the waits of a loop, in words.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Every(delay) => format!("every {}", shown_duration(&delay.source_text())),
            Self::Backoff(backoff) => backoff.title(),
            Self::Server { own, interval, .. } => {
                let own = match interval {
                    Some(interval) => format!("every {}", interval.source_text()),
                    None => own.title(),
                };
                format!("{own}, or as the server says")
            }
        }
    }
}

impl Unchanged {
    /// Describes when iterations count as unchanged, in words.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.of {
            Some(of) => format!("{} times the same {}", self.times, of.source_text()),
            None => format!("{} times the same", self.times),
        }
    }
}
