//! Writes what scripts print to the log, up to a limit. Printed text never becomes part of an output.

use futures_util::FutureExt;
use std::collections::VecDeque;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

/// Maximum size in bytes of the logged output of one script.
pub(super) const MAX_LOG: usize = 1 << 20;

/// Maximum length in bytes of a line. A longer line is logged as several lines.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum number of logged lines of a script whose printed text is read only at its end.
pub(super) const MAX_LINES: usize = 10_000;

/// Number of the last printed bytes that are retained, for a message about the end of a process.
const LAST_WORDS: usize = 4 << 10;

/// Writes one line of a script to the log.
pub(crate) fn line(action: &str, text: &str) {
    tracing::info!(target: "script", action, "{text}");
}

/// The standard error of a process that runs scripts.
pub(super) struct Log {
    /// The pipe of standard error. `None` after the end of the stream.
    pipe: Option<ChildStderr>,
    action: String,
    unfinished: Vec<u8>,
    /// Number of bytes that may still be logged.
    left: usize,
    last: VecDeque<u8>,
}

impl Log {
    pub(super) fn new(pipe: ChildStderr) -> Self {
        Self {
            pipe: Some(pipe),
            action: String::new(),
            unfinished: Vec::new(),
            left: MAX_LOG,
            last: VecDeque::new(),
        }
    }

    /// Attributes the text that is printed after this call to an action.
    pub(super) fn begin(&mut self, action: &str) {
        self.finish_line();
        action.clone_into(&mut self.action);
        self.left = MAX_LOG;
        self.last.clear();
    }

    /// Waits until something is printed, and logs it. After the end of the stream, waits for ever.
    pub(super) async fn read(&mut self) {
        let mut buffer = [0; 4 << 10];
        let Some(pipe) = &mut self.pipe else {
            return std::future::pending().await;
        };
        match pipe.read(&mut buffer).await {
            Ok(length @ 1..) => self.take(buffer.get(..length).unwrap_or_default()),
            _ => self.pipe = None,
        }
    }

    /// Logs everything that has been printed, including an unfinished line.
    pub(super) fn drain(&mut self) {
        while self.pipe.is_some() && self.read().now_or_never().is_some() {}
        self.finish_line();
    }

    /// Returns the last bytes that were printed.
    pub(super) fn last_words(&mut self) -> VecDeque<u8> {
        std::mem::take(&mut self.last)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.last.extend(bytes);
        let excess = self.last.len().saturating_sub(LAST_WORDS);
        self.last.drain(..excess);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.unfinished.extend(piece);
            if piece.ends_with(b"\n") || self.unfinished.len() >= MAX_LINE_BYTES {
                self.finish_line();
            }
        }
    }

    fn finish_line(&mut self) {
        let bytes = std::mem::take(&mut self.unfinished);
        if bytes.is_empty() || self.left == 0 {
            return;
        }
        self.left = self.left.saturating_sub(bytes.len());
        line(&self.action, String::from_utf8_lossy(&bytes).trim_end());
        if self.left == 0 {
            line(&self.action, "(it prints more than is logged)");
        }
    }
}
