//! Reads the messages of clients, and explains those that cannot be read.
//! The MCP library ignores such a message, so its client would wait for an answer for ever. And the library rounds
//! integers over 64 bits.

use rmcp::model::{ErrorCode, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use rmcp::{ErrorData, model::JsonRpcError};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use windlass_value::inexact_json;

pub type Message = RxJsonRpcMessage<RoleServer>;

/// Reads a message. Returns `None` if the message is a notification that is not known, which needs no answer.
///
/// # Errors
/// The answer to a message that cannot be read. It has the id of the request if the id can be found.
pub fn read(text: &[u8]) -> Result<Option<Message>, Box<JsonRpcError>> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let text = text.trim_ascii();
    let why = match (inexact_json(text), serde_json::from_slice(text)) {
        (Some(why), _) => why,
        (None, Ok(message)) => return Ok(Some(message)),
        (None, Err(error)) => error.to_string(),
    };
    let head = Head::of(text);
    match serde_json::from_slice::<IgnoredAny>(text) {
        Err(_) => Err(refusal(head.request_id(), ErrorCode::PARSE_ERROR, &why)),
        Ok(_) if head.id.is_none() && head.has_method => Ok(None),
        Ok(_) if text.starts_with(b"[") => {
            let why = "it has to be one object, because batches are not supported";
            Err(refusal(None, ErrorCode::INVALID_REQUEST, why))
        }
        Ok(_) => Err(refusal(head.request_id(), ErrorCode::INVALID_REQUEST, &why)),
    }
}

/// Returns the answer to a message of which only the beginning was read, because the message is too long.
pub fn too_long(beginning: &[u8], limit: usize) -> Box<JsonRpcError> {
    let why = format!("it is larger than {} MiB", limit >> 20);
    let id = Head::of(beginning).request_id();
    refusal(id, ErrorCode::INVALID_REQUEST, &why)
}

fn refusal(id: Option<RequestId>, code: ErrorCode, why: &str) -> Box<JsonRpcError> {
    let message = format!("the message cannot be read: {why}");
    Box::new(JsonRpcError::new(id, ErrorData::new(code, message, None)))
}

/// What can be read of a message that is not complete or not valid.
#[derive(Default)]
struct Head {
    id: Option<RequestId>,
    has_method: bool,
    /// Whether it has a member that only the answer to a request of this server has.
    is_answer: bool,
    /// Whether all members were read.
    is_whole: bool,
}

impl Head {
    fn of(text: &[u8]) -> Self {
        let mut head = Self::default();
        // After an error, the members before it were read.
        let read = serde_json::Deserializer::from_slice(text).deserialize_map(&mut head);
        head.is_whole = read.is_ok();
        head
    }

    /// Returns the id if the message may be a request. The id of an answer is one that this server chose.
    fn request_id(self) -> Option<RequestId> {
        let may_have_method = self.has_method || !self.is_whole && !self.is_answer;
        self.id.filter(|_| may_have_method)
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => self.id = Some(map.next_value()?),
                "method" => {
                    self.has_method = true;
                    map.next_value::<IgnoredAny>()?;
                }
                other => {
                    self.is_answer |= matches!(other, "result" | "error");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}
