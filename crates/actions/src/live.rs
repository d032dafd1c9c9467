//! Sends what a command prints to listeners, line by line while the command runs. Output that may contain a secret is
//! never sent, because secrets can be masked only in complete output.

use super::execution_context;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Maximum length in bytes of a line. A longer line is sent as several lines.
const MAX_LINE_BYTES: usize = 8 << 10;

/// The stream to which a command printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A function that receives each printed line, with its stream.
#[derive(Clone)]
pub struct Listener(Arc<dyn Fn(OutputStream, String) + Send + Sync>);

impl Listener {
    /// Makes a listener. The task that reads a stream calls this function.
    pub fn new(callback: impl Fn(OutputStream, String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Listener")
    }
}

/// Splits the output of one stream into lines.
pub(super) struct Lines {
    stream: OutputStream,
    listener: Option<Listener>,
    unfinished: Vec<u8>,
}

impl Lines {
    /// Makes the splitter for a stream of the command that this task runs. It sends the lines to the listener of the
    /// task.
    pub(super) fn of(stream: OutputStream) -> Self {
        Self {
            stream,
            listener: execution_context::listener(),
            unfinished: Vec::new(),
        }
    }

    /// Adds bytes, and sends the lines that are complete.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if self.listener.is_none() {
            return;
        }
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            self.send_line(line.strip_suffix(b"\n").unwrap_or(&line));
        }
        if self.unfinished.len() > MAX_LINE_BYTES {
            self.end();
        }
    }

    /// Sends the last line if it has no line end.
    pub(super) fn end(&mut self) {
        let rest = std::mem::take(&mut self.unfinished);
        if !rest.is_empty() {
            self.send_line(&rest);
        }
    }

    fn send_line(&self, line: &[u8]) {
        if let Some(Listener(callback)) = &self.listener {
            let text = String::from_utf8_lossy(line);
            callback(self.stream, text.trim_end_matches('\r').to_owned());
        }
    }
}
