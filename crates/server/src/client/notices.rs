//! The notices of a followed run, decoded from server-sent events.

use super::ClientError;
use crate::api::Problem;
use reqwest::Response;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use windlass_engine::report::OutcomeReport;
use windlass_engine::{HistoryEvent, Notice};

/// Timeout of a stream on which nothing arrives. A server sends a comment more often than this.
const SILENCE: Duration = Duration::from_secs(60);

/// The notices of a followed run.
pub struct Notices {
    response: Response,
    /// The received part of the event that is not complete yet.
    text: Vec<u8>,
    ready: VecDeque<Notice>,
    /// Whether the stream fails after [`SILENCE`].
    bounded: bool,
}

impl Notices {
    pub(super) fn new(response: Response, bounded: bool) -> Self {
        Self {
            response,
            text: Vec::new(),
            ready: VecDeque::new(),
            bounded,
        }
    }

    /// Returns the next notice, or `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Notice>, ClientError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(Some(notice));
            }
            let silence = if self.bounded { SILENCE } else { Duration::MAX };
            let chunk = tokio::time::timeout(silence, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| ClientError::Lost)?;
            let Some(chunk) = chunk.map_err(|_| ClientError::Lost)? else {
                return Ok(None);
            };
            let mut searched = self.text.len().saturating_sub(1);
            self.text.extend_from_slice(&chunk);
            while let Some(end) = end_of_event(&self.text, searched) {
                let block: Vec<u8> = self.text.drain(..end).collect();
                self.ready.extend(notice(&String::from_utf8_lossy(&block))?);
                searched = 0;
            }
        }
    }
}

/// Returns the position after the first event and its empty line.
/// Searches only after `searched`, because the text before that position was searched earlier.
fn end_of_event(text: &[u8], searched: usize) -> Option<usize> {
    let rest = text.get(searched..)?;
    let end = rest.windows(2).position(|two| two == b"\n\n")?;
    Some(searched + end + 2)
}

/// Decodes a server-sent event. Returns `None` for a comment.
fn notice(block: &str) -> Result<Option<Notice>, ClientError> {
    let (mut name, mut id, mut data) = ("", "", "");
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("event", text)) => name = text,
            Some(("id", text)) => id = text,
            Some(("data", text)) => data = text,
            _ => {}
        }
    }
    let foreign = |error: serde_json::Error| ClientError::Foreign(error.to_string());
    Ok(Some(match name {
        "history" => {
            let event: HistoryEvent = serde_json::from_str(data).map_err(foreign)?;
            let sequence = id.parse().unwrap_or(0);
            Notice::Event { sequence, event }
        }
        "finished" => {
            let outcome: Box<OutcomeReport> = serde_json::from_str(data).map_err(foreign)?;
            Notice::Finished { outcome }
        }
        "step" | "printed" | "paused" | "stuck" => {
            let mut value: Value = serde_json::from_str(data).map_err(foreign)?;
            if name == "paused" {
                value = json!({ "pause": value });
            }
            if let Some(map) = value.as_object_mut() {
                map.insert(String::from("notice"), json!(name));
            }
            serde_json::from_value(value).map_err(foreign)?
        }
        "error" => {
            let problem: Problem = serde_json::from_str(data).map_err(foreign)?;
            return Err(problem.into());
        }
        _ => return Ok(None),
    }))
}
