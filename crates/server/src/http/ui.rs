//! The console: the embedded files of `ui/dist`.
//! All its pages are one document, the shell. The shell contains no data and requests everything from the API. So it
//! needs no token, and a link in a mail can open it.

use super::app::App;
use crate::api::Problem;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};
use windlass_engine::ErrorCode;

/// What a page of the console may load and do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types svelte-trusted-html windlass";

/// The headers of every file of the console.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::VARY, "accept-encoding"),
];

/// The cache lifetime of a file whose content never changes at its URL.
const FOREVER: &str = "public, max-age=31536000, immutable";
/// The cache lifetime of a file that may change.
const REVALIDATE: &str = "no-cache";

/// An embedded file.
struct File {
    name: &'static str,
    kind: &'static str,
    bytes: Bytes,
    packed: Bytes,
    /// The first digits of the file's SHA-256, in hexadecimal.
    version: String,
}

impl File {
    fn new(name: &'static str, kind: &'static str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let mut version = String::new();
        for byte in digest(&SHA256, &bytes).as_ref().iter().take(16) {
            // Writing to a `String` does not fail.
            let _ = write!(version, "{byte:02x}");
        }
        Self {
            name,
            kind,
            packed: packed(&bytes).unwrap_or_default(),
            bytes,
            version,
        }
    }

    fn answer(&self, query: Option<&str>, request_headers: &HeaderMap) -> Response {
        let text = |name: HeaderName| {
            let value = request_headers
                .get(name)
                .and_then(|value| value.to_str().ok());
            value.unwrap_or_default()
        };
        let packs = text(header::ACCEPT_ENCODING)
            .split(',')
            .any(|one| one.trim() == "gzip" || one.trim().starts_with("gzip;q=1"));
        let packs = packs && !self.packed.is_empty() && self.packed.len() < self.bytes.len();
        let tag = match packs {
            true => format!("\"{}-gzip\"", self.version),
            false => format!("\"{}\"", self.version),
        };
        let fixed = query.and_then(|query| query.strip_prefix("v=")) == Some(&*self.version);
        let cache = if fixed { FOREVER } else { REVALIDATE };
        let known = text(header::IF_NONE_MATCH)
            .split(',')
            .any(|one| one.trim().trim_start_matches("W/") == tag);
        let mut response = match (known, packs) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, true) => {
                ([(header::CONTENT_ENCODING, "gzip")], self.packed.clone()).into_response()
            }
            (false, false) => self.bytes.clone().into_response(),
        };
        let headers = response.headers_mut();
        match known {
            true => drop(headers.remove(header::CONTENT_TYPE)),
            false => {
                drop(headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind)))
            }
        }
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

fn packed(bytes: &[u8]) -> Option<Bytes> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).ok()?;
    packer.finish().ok().map(Bytes::from)
}

macro_rules! embedded {
    ($name:literal) => {
        &include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/ui/dist/", $name))[..]
    };
}

/// The files of the console that the shell loads.
static FILES: LazyLock<[File; 9]> = LazyLock::new(|| {
    let script = "text/javascript; charset=utf-8";
    [
        File::new("app.js", script, embedded!("app.js")),
        File::new("run.js", script, embedded!("run.js")),
        File::new("edit.js", script, embedded!("edit.js")),
        File::new("workflows.js", script, embedded!("workflows.js")),
        File::new("docs.js", script, embedded!("docs.js")),
        File::new("editor.js", script, embedded!("editor.js")),
        File::new("worker.js", script, embedded!("worker.js")),
        File::new("app.css", "text/css; charset=utf-8", embedded!("app.css")),
        File::new("favicon.svg", "image/svg+xml", embedded!("favicon.svg")),
    ]
});

macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        [$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/", $name, ".md")),
        )),*]
    };
}

/// The manual as one JSON object with the name and the text of each page. It is compressed at the first request.
static MANUAL: LazyLock<File> = LazyLock::new(|| {
    let pages: serde_json::Map<String, serde_json::Value> = pages![
        "SUMMARY",
        "architecture",
        "concepts",
        "get-started/first-poll",
        "get-started/first-workflow",
        "get-started/install",
        "get-started/start",
        "guides/agents",
        "guides/backups",
        "guides/cookbook",
        "guides/editors",
        "guides/from-cron",
        "guides/paging",
        "guides/polling",
        "guides/retries",
        "guides/schedules",
        "guides/state",
        "guides/approvals",
        "guides/triggers",
        "guides/server",
        "guides/temporal",
        "internals/add-a-format",
        "internals/peers",
        "internals/performance",
        "internals/reliability",
        "internals/store-files",
        "internals/store-format",
        "internals/store-sled",
        "reference/access",
        "reference/actions",
        "reference/azure",
        "reference/canvas",
        "reference/cli",
        "reference/compatibility",
        "reference/console",
        "reference/expressions",
        "reference/guest-workflows",
        "reference/http-api",
        "reference/loom",
        "reference/long-operations",
        "reference/loops",
        "reference/monitoring",
        "reference/no-ceiling",
        "reference/operations",
        "reference/rate-limits",
        "reference/secrets",
        "reference/store",
        "reference/tea",
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), without_comments(text).into()))
    .collect();
    let text = serde_json::Value::Object(pages).to_string();
    File::new("docs.json", "application/json", text)
});

/// Returns a page without the lines that are HTML comments, because the console shows HTML as text.
fn without_comments(page: &str) -> String {
    let lines = page.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("<!--")).collect()
}

/// The shell. Its URLs of other files contain the files' versions, so that a browser can cache each file until it
/// changes.
/// Scripts that import each other have no version in their URL: with two URLs, such a script would run twice.
static SHELL: LazyLock<File> = LazyLock::new(|| {
    let mut text = String::from_utf8_lossy(embedded!("index.html")).into_owned();
    for File { name, version, .. } in FILES.iter().filter(|file| file.name != "app.js") {
        text = text.replace(
            &format!("\"/ui/{name}\""),
            &format!("\"/ui/{name}?v={version}\""),
        );
    }
    File::new("index.html", "text/html; charset=utf-8", text)
});

/// Returns true if a path belongs to the console.
pub(super) fn is_console_path(path: &str) -> bool {
    is_shell(path) || path.starts_with("/ui/")
}

/// Returns true if the shell is returned at a path.
/// That is every path of the console except those that may be a file. Only the first part of the path decides,
/// because the id of a run in a later part may contain a dot.
pub(super) fn is_shell(path: &str) -> bool {
    let place = path.strip_prefix("/ui/");
    matches!(path, "/" | "/ui")
        || place.is_some_and(|place| place.contains('/') || !place.contains('.'))
}

/// Redirects to the console.
pub(super) async fn redirect(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    has_console(&app)?;
    Ok(Redirect::temporary("/ui/").into_response())
}

pub(super) async fn shell(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    has_console(&app)?;
    Ok(SHELL.answer(None, &headers))
}

/// Returns a file of the console. At the paths of pages, returns the shell.
pub(super) async fn file(
    State(app): State<Arc<App>>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    has_console(&app)?;
    if let Some(file) = FILES.iter().find(|file| file.name == path) {
        return Ok(file.answer(query.as_deref(), &headers));
    }
    if path == "docs.json" {
        return Ok(MANUAL.answer(query.as_deref(), &headers));
    }
    if path == SHELL.name || is_shell(&format!("/ui/{path}")) {
        return Ok(SHELL.answer(None, &headers));
    }
    let detail = "the console has no such file";
    Err(Problem::new(ErrorCode::NotFound, detail))
}

fn has_console(app: &App) -> Result<(), Problem> {
    if app.guard.has_console() {
        return Ok(());
    }
    let detail = "this server has no console (--ui)";
    Err(Problem::new(ErrorCode::NotFound, detail))
}
