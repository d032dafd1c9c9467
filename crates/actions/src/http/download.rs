//! `saveTo`: saves the body of an answer in a file. If the server still has the same version, an attempt requests only
//! the bytes that the attempt before did not receive (RFC 9110, 14). If the version is another one, the attempt starts
//! over. The target file is replaced only when all bytes have arrived.

use super::client::CallOptions;
use super::fault::{connection_fault, shown};
use super::partial::{Partial, SaveTarget};
use super::reply::{Answer, Reply};
use super::stall::StallWatch;
use super::{HttpCall, allowed, digest, output, reply, request};
use crate::inputs::{Inputs, invalid};
use reqwest::header::{CONTENT_RANGE, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use windlass_expression::{Object, Value, shared_key};
use windlass_model::model::{Fault, Request, fault_kind};
use windlass_value::hex;

/// Number of bytes that are written together.
const WRITE_BYTES: usize = 256 << 10;

/// Maximum time that received bytes wait for a write. After this time, fewer bytes than [`WRITE_BYTES`] are written, so
/// a killed process loses only the bytes of this time.
const WRITE_DELAY: Duration = Duration::from_secs(1);

/// An answer. If its body is saved to a file, the body is not read yet.
enum Arrival {
    Content(Box<Response>),
    Other(Box<Reply>),
}

impl Answer for Arrival {
    async fn read(method: &Method, response: Response) -> Result<Self, Fault> {
        let status = response.status();
        let is_empty = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT].contains(&status);
        if *method == Method::HEAD || is_empty || !status.is_success() {
            let reply = Reply::read(method, response).await?;
            return Ok(Self::Other(Box::new(reply)));
        }
        Ok(Self::Content(Box::new(response)))
    }
}

/// The range of a body, from `Content-Range`: `bytes 5-9/20`, or `bytes */20` if the requested range does not exist.
#[derive(Debug, PartialEq)]
struct ContentRange {
    start: Option<u64>,
    /// The size in bytes of the whole file, if the server knows it.
    size: Option<u64>,
}

impl ContentRange {
    fn parse(text: &str) -> Option<Self> {
        let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let start = range.split_once('-').map(|(start, _)| start.trim());
        Some(Self {
            start: start.and_then(|start| start.parse().ok()),
            size: size.trim().parse().ok(),
        })
    }

    fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(CONTENT_RANGE)?.to_str().ok()?)
    }

    /// Reads the range from the headers in the output of a fault of status 416.
    fn of_fault(fault: &Fault) -> Option<Self> {
        let headers = fault.output.as_ref()?.get("headers")?;
        Self::parse(headers.get(CONTENT_RANGE.as_str())?.as_str()?)
    }
}

/// How the content of an answer relates to the partial file.
#[derive(Debug, PartialEq)]
enum Content {
    /// The whole file. The value is its size, if the server names it.
    Whole(Option<u64>),
    /// The bytes after those in the partial file. The value is the size of the whole file, if the server names it.
    Rest(Option<u64>),
    /// Bytes of another version, or not the requested range.
    Other,
}

impl Content {
    /// Classifies an answer. `continues`: only the rest of the file was requested.
    fn of(response: &Response, partial: &Partial, continues: bool) -> Self {
        let headers = response.headers();
        if !continues || response.status() != StatusCode::PARTIAL_CONTENT {
            return Self::Whole(response.content_length());
        }
        match ContentRange::of(headers) {
            Some(range)
                if range.start == Some(partial.length()) && !partial.is_other_version(headers) =>
            {
                Self::Rest(range.size)
            }
            _ => Self::Other,
        }
    }
}

/// A file whose bytes have all arrived.
struct Complete {
    partial: Partial,
    /// The members of the output that do not describe the file.
    head: Object,
    url: Url,
    /// The digest of the whole file in the server's answer.
    promised: Option<String>,
    /// Whether the file was assembled from several answers.
    is_resumed: bool,
}

impl HttpCall<'_> {
    /// Makes one attempt: downloads the rest of the file, or all of it.
    pub(super) async fn download(
        mut self,
        request: &Request,
        file: &str,
        progress: &StallWatch,
    ) -> Result<Value, Fault> {
        let expected = Inputs::of(request)?.text("digest")?;
        let expected = expected.map(digest::parse).transpose()?;
        let target = SaveTarget::new(file, &request.key);
        let reports = progress.clone();
        let mut partial = blocking(move || Partial::open(&target, &reports)).await?;
        let complete = loop {
            let (mut call, at_home) = request::first(request)?;
            let continues = partial.request_rest(&mut call);
            let (url, method) = (call.url().clone(), call.method().clone());
            let options = CallOptions {
                keeps_bytes: true,
                ..CallOptions::default()
            };
            let answer = match at_home {
                true => self.call_with(call, true).await,
                false => self.client.call_with(call, options).await,
            };
            let without_content = match answer {
                Ok(Arrival::Content(response)) => {
                    match received(partial, *response, continues, progress).await? {
                        Received::All(complete) => break *complete,
                        Received::Part(part) => partial = *part,
                    }
                    continue;
                }
                Err(fault) if continues && fault.code.as_deref() == Some("416") => {
                    if is_complete(&fault, &partial) {
                        // An earlier attempt received all bytes, and was aborted before it finished the file.
                        let head = fault.output.as_ref().and_then(Value::as_object);
                        break Complete {
                            head: head.cloned().unwrap_or_default(),
                            partial,
                            url,
                            promised: None,
                            is_resumed: true,
                        };
                    }
                    partial = restarted(partial, HeaderMap::new()).await?;
                    continue;
                }
                Ok(Arrival::Other(reply)) => output(*reply, request, &method),
                Err(fault) => allowed(fault, request),
            };
            blocking(move || partial.remove_if_empty()).await?;
            return without_content;
        };
        let has_page = request.inputs.get("page").is_some();
        let file = file.to_owned();
        blocking(move || complete.finish(&file, expected.as_deref(), has_page)).await
    }
}

/// Returns true if the server reports no bytes after those in the partial file.
fn is_complete(fault: &Fault, partial: &Partial) -> bool {
    let range = ContentRange::of_fault(fault);
    range.and_then(|range| range.size) == Some(partial.length())
}

enum Received {
    All(Box<Complete>),
    /// A part of the file is still missing: request the rest.
    Part(Box<Partial>),
}

/// Adds the content of an answer to the file.
async fn received(
    mut partial: Partial,
    response: Response,
    continues: bool,
    progress: &StallWatch,
) -> Result<Received, Fault> {
    let (status, headers) = (response.status(), response.headers().clone());
    let reply = Reply::without_body(&response);
    let content = Content::of(&response, &partial, continues);
    match content {
        Content::Whole(_) => partial = restarted(partial, headers.clone()).await?,
        Content::Rest(_) => {}
        Content::Other => {
            // Start over: the next request is for the whole file.
            let partial = restarted(partial, HeaderMap::new()).await?;
            return Ok(Received::Part(Box::new(partial)));
        }
    }
    let before = partial.length();
    let (partial, ended) = save(partial, response, progress).await?;
    ended?;
    let length = partial.length();
    match content {
        // Request the rest again, because some servers send less than was requested. If the size is not known, the next
        // answer shows whether this was all.
        Content::Rest(size) if length > before && size.is_none_or(|size| length < size) => {
            return Ok(Received::Part(Box::new(partial)));
        }
        Content::Rest(Some(size)) | Content::Whole(Some(size)) if length != size => {
            let url = shown(&reply.url);
            let message = format!("the answer of {url} ended after {length} of {size} bytes");
            return Err(Fault::new(fault_kind::CONNECTION, message).transient());
        }
        _ => {}
    }
    Ok(Received::All(Box::new(Complete {
        partial,
        url: reply.url.clone(),
        head: reply.into_object(),
        promised: digest::promised(status, &headers),
        is_resumed: before > 0,
    })))
}

/// Writes a body as it arrives. The bytes before an error are written, too. The inner result is the error at which the
/// body ended, if any.
async fn save(
    mut partial: Partial,
    mut response: Response,
    progress: &StallWatch,
) -> Result<(Partial, Result<(), Fault>), Fault> {
    let mut bytes = Vec::with_capacity(WRITE_BYTES);
    let mut due = pin!(sleep(WRITE_DELAY));
    loop {
        let chunk = tokio::select! {
            chunk = response.chunk() => Some(chunk),
            () = &mut due, if !bytes.is_empty() => None,
        };
        let is_due = chunk.is_none();
        let ended = match chunk {
            None => None,
            Some(Ok(Some(chunk))) => {
                progress.report();
                if bytes.is_empty() {
                    due.as_mut().reset(Instant::now() + WRITE_DELAY);
                }
                bytes.extend_from_slice(&chunk);
                None
            }
            Some(Ok(None)) => Some(Ok(())),
            Some(Err(error)) => Some(Err(connection_fault(response.url(), error, false))),
        };
        if bytes.len() >= WRITE_BYTES || is_due || ended.is_some() {
            (partial, bytes) = blocking(move || {
                partial.append(&bytes)?;
                bytes.clear();
                Ok((partial, bytes))
            })
            .await?;
        }
        if let Some(ended) = ended {
            return Ok((partial, ended));
        }
    }
}

async fn restarted(mut partial: Partial, headers: HeaderMap) -> Result<Partial, Fault> {
    blocking(move || {
        partial.restart(&headers)?;
        Ok(partial)
    })
    .await
}

/// Runs disk work on a thread for blocking work. If the attempt is aborted, the work still continues to its end, and
/// the file remains locked until then.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(invalid(format!("saving the answer broke off: {error}"))))
}

impl Complete {
    /// Checks the digests, replaces the target with the file, and returns the output. Blocks.
    fn finish(self, file: &str, expected: Option<&str>, has_page: bool) -> Result<Value, Fault> {
        let digest = hex(self.partial.digest().as_ref());
        let promised = self.promised.as_deref();
        for (wanted, who) in [(expected, "`digest` is"), (promised, "the server promised")] {
            let Some(wanted) = wanted.filter(|wanted| *wanted != digest) else {
                continue;
            };
            let message = format!(
                "the file from {} has sha256:{digest}, and {who} sha256:{wanted}: it was removed, \
                 and {file} is as it was",
                shown(&self.url)
            );
            let fault = Fault::new(fault_kind::EXPECT, message);
            // The fault is transient if the next attempt may succeed: the file is from several answers, or the server's
            // own digest shows a damaged transfer.
            let transient = self.is_resumed || expected.is_none();
            self.partial.discard()?;
            return Err(match transient {
                true => fault.transient(),
                false => fault,
            });
        }
        let size = i64::try_from(self.partial.length()).unwrap_or(i64::MAX);
        let status = match self.is_resumed {
            true => StatusCode::PARTIAL_CONTENT,
            false => StatusCode::OK,
        };
        self.partial.finish()?;
        let mut output = self.head;
        output.shift_remove("body");
        let encoding = encoding(&output);
        let status = i64::from(status.as_u16());
        output.insert(shared_key("statusCode"), Value::Int(status));
        for (name, value) in [
            ("file", Value::text(file)),
            ("size", Value::Int(size)),
            ("sha256", Value::text(digest)),
        ] {
            output.insert(shared_key(name), value);
        }
        if let Some(encoding) = encoding {
            output.insert(shared_key("contentEncoding"), encoding);
        }
        if has_page {
            output.insert(shared_key("url"), reply::url_text(self.url));
        }
        Ok(Value::object(output))
    }
}

/// Returns the compression of a file. The file remains compressed as the server sent it: only these bytes can be
/// continued by a later attempt, and only they match the server's digest.
fn encoding(output: &Object) -> Option<Value> {
    let given = output
        .get("headers")?
        .get("content-encoding")?
        .as_str()?
        .trim();
    let is_packed = !given.is_empty() && !given.eq_ignore_ascii_case("identity");
    is_packed.then(|| Value::text(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_file_says_how() {
        let said = |given: &str| {
            let headers = Value::from_pairs([("content-encoding", Value::text(given))]);
            let mut output = Object::new();
            output.insert(shared_key("headers"), headers);
            encoding(&output)
        };
        assert_eq!(said("gzip"), Some(Value::text("gzip")));
        assert_eq!(said("Identity"), None);
        assert_eq!(encoding(&Object::new()), None);
    }

    #[test]
    fn a_content_range_is_read() {
        let range = |start, size| Some(ContentRange { start, size });
        for (text, expected) in [
            ("bytes 5-9/20", range(Some(5), Some(20))),
            ("bytes 5-9/*", range(Some(5), None)),
            ("bytes */20", range(None, Some(20))),
            ("items 5-9/20", None),
            ("bytes", None),
        ] {
            assert_eq!(ContentRange::parse(text), expected, "{text}");
        }
    }
}
