//! The transport over standard input and output: each line is a message.

use super::message::{self, Message};
use rmcp::model::JsonRpcError;
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use tokio::io::{AsyncBufReadExt, BufReader, Empty, Stdin, Stdout};

/// Maximum length of a line in bytes.
const MAX_LINE: usize = 16 << 20;

pub struct Stdio {
    input: BufReader<Stdin>,
    /// The line that is being read. It stays here if [`Stdio::receive`] is cancelled.
    line: Vec<u8>,
    is_too_long: bool,
    output: AsyncRwTransport<RoleServer, Empty, Stdout>,
}

impl Stdio {
    pub fn new() -> Self {
        Self {
            input: BufReader::new(tokio::io::stdin()),
            line: Vec::new(),
            is_too_long: false,
            output: AsyncRwTransport::new(tokio::io::empty(), tokio::io::stdout()),
        }
    }

    /// Reads to the end of the line, which may be the end of the input. Returns false after the last line.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.input.fill_buf().await?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(available.len(), |end| end + 1);
            if length == 0 {
                return Ok(!self.line.is_empty());
            }
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.is_too_long |= length > room;
            let fitting = available.get(..length.min(room)).unwrap_or_default();
            self.line.extend_from_slice(fitting);
            self.input.consume(length);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    #[allow(clippy::disallowed_methods)] // `receive` may be cancelled, but the answer must be complete.
    fn refuse(&mut self, answer: JsonRpcError) {
        tokio::spawn(
            self.output
                .send(TxJsonRpcMessage::<RoleServer>::Error(answer)),
        );
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.output.send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if !self.read_line().await.ok()? {
                return None;
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = match std::mem::take(&mut self.is_too_long) {
                true => Err(message::too_long(&line, MAX_LINE)),
                false => message::read(&line),
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(answer) => self.refuse(*answer),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}
