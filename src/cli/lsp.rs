//! `windlass lsp`: the language server, for editors (docs/guides/editors.md).
//! It uses the Language Server Protocol over standard input and output, and handles one message after the other. An
//! invalid request is answered with an error. An invalid notification is dropped. Only `exit` and the end of the
//! input end the server.

use super::args::LspArgs;
use super::exit::{Exit, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use windlass_engine::report::{DiagnosticReport, diagnostics};
use windlass_engine::{
    Bundle, Dialect, LoadError, LoadOptions, Open, SourceFile, View, Workflow, dialect_of, graph,
    load_bundle,
};
use windlass_language::{
    CompletionKind, Position, Symbol, TextEdit, TextRange, complete, edited, hover, symbols,
};

/// Maximum size of a message in bytes. A longer message is dropped.
const MAX_MESSAGE: u64 = 64 << 20;
/// Maximum size of a header line in bytes.
const MAX_HEADER: u64 = 8 << 10;

/// Error codes of JSON-RPC and of the Language Server Protocol.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const NOT_INITIALIZED: i64 = -32_002;

pub fn lsp(_args: &LspArgs) -> Result<Exit, Failure> {
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut server = Server {
        out: std::io::stdout().lock(),
        phase: Phase::New,
        documents: BTreeMap::new(),
    };
    serve(&mut input, &mut server).map_err(Failure::Output)
}

fn serve(
    input: &mut BufReader<impl Read>,
    server: &mut Server<impl Write>,
) -> std::io::Result<Exit> {
    loop {
        // If more messages have already arrived, they may change the texts again. So diagnostics are published only
        // after the last one.
        if input.buffer().is_empty() {
            server.publish_changed()?;
        }
        match message(input)? {
            None => return Ok(Exit::Succeeded),
            Some(Err(why)) => server.refuse(&Value::Null, PARSE_ERROR, &why)?,
            Some(Ok(message)) => {
                if let Some(exit) = server.take(message)? {
                    return Ok(exit);
                }
            }
        }
    }
}

/// Reads the next message. Returns `None` at the end of the input.
/// The inner error is that of a message that cannot be read.
fn message(input: &mut impl BufRead) -> std::io::Result<Option<Result<Message, String>>> {
    let mut length: Option<u64> = None;
    loop {
        let mut line = Vec::new();
        if input.take(MAX_HEADER).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            match length {
                Some(_) => break,
                // Blank lines between messages are skipped.
                None => continue,
            }
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok();
        }
    }
    let length = length.unwrap_or_default();
    if length > MAX_MESSAGE {
        std::io::copy(&mut input.take(length), &mut std::io::sink())?;
        let why = format!("a message has {MAX_MESSAGE} bytes at most");
        return Ok(Some(Err(why)));
    }
    let mut body = Vec::new();
    if input.take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(None);
    }
    let message = serde_json::from_slice(&body).map_err(|error| error.to_string());
    Ok(Some(message))
}

/// A request. Without an id, it is a notification.
/// An answer to a request of the server itself has no method.
#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Ready,
    ShutDown,
}

/// A text that is open in the editor.
struct Document {
    version: Value,
    text: String,
    /// Whether the text has changed since its diagnostics were published.
    changed: bool,
    found: Vec<DiagnosticReport>,
}

struct Server<W> {
    out: W,
    phase: Phase,
    documents: BTreeMap<String, Document>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentParams {
    text_document: DocumentId,
    position: Option<Position>,
    range: Option<TextRange>,
    #[serde(default)]
    content_changes: Vec<ContentChange>,
}

#[derive(Deserialize)]
struct DocumentId {
    uri: String,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct ContentChange {
    range: Option<TextRange>,
    text: String,
}

impl<W: Write> Server<W> {
    fn send(&mut self, message: &Value) -> std::io::Result<()> {
        let body = message.to_string();
        write!(self.out, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.out.flush()
    }

    fn refuse(&mut self, id: &Value, code: i64, why: &str) -> std::io::Result<()> {
        let error = json!({ "code": code, "message": why });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }

    /// Handles a message. Returns the exit code if the message ends the server, and otherwise `None`.
    fn take(&mut self, message: Message) -> std::io::Result<Option<Exit>> {
        let Some(method) = message.method else {
            return Ok(None);
        };
        let Some(id) = message.id else {
            if method == "exit" {
                return Ok(Some(match self.phase {
                    Phase::ShutDown => Exit::Succeeded,
                    Phase::New | Phase::Ready => Exit::Failed,
                }));
            }
            if self.phase == Phase::Ready {
                self.handle_notification(&method, message.params)?;
            }
            return Ok(None);
        };
        let answer = match (self.phase, &*method) {
            (Phase::New, "initialize") => {
                self.phase = Phase::Ready;
                Ok(initialized())
            }
            (Phase::New, _) => Err((NOT_INITIALIZED, String::from("send `initialize` first"))),
            (Phase::ShutDown, _) => Err((INVALID_REQUEST, String::from("it was shut down"))),
            (Phase::Ready, "shutdown") => {
                self.phase = Phase::ShutDown;
                Ok(Value::Null)
            }
            (Phase::Ready, method) => self.handle_request(method, message.params),
        };
        match answer {
            Ok(result) => {
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
            }
            Err((code, why)) => self.refuse(&id, code, &why)?,
        }
        Ok(None)
    }

    fn handle_notification(&mut self, method: &str, params: Value) -> std::io::Result<()> {
        // The client does not wait for an answer to a notification, so an invalid notification is dropped.
        let Ok(params) = read::<DocumentParams>(params) else {
            return Ok(());
        };
        let DocumentId { uri, version, text } = params.text_document;
        match method {
            "textDocument/didOpen" => {
                let document = Document {
                    version,
                    text,
                    changed: true,
                    found: Vec::new(),
                };
                self.documents.insert(uri, document);
            }
            "textDocument/didChange" => {
                if let Some(document) = self.documents.get_mut(&uri) {
                    document.version = version;
                    document.change(params.content_changes);
                }
            }
            "textDocument/didSave" => {
                // Files that name the saved file may have become valid or invalid.
                for document in self.documents.values_mut() {
                    document.changed = true;
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(&uri);
                let params = json!({ "uri": uri, "diagnostics": [] });
                self.publish(params)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn publish(&mut self, params: Value) -> std::io::Result<()> {
        let method = "textDocument/publishDiagnostics";
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Publishes the diagnostics of the texts that have changed.
    fn publish_changed(&mut self) -> std::io::Result<()> {
        let changed = self
            .documents
            .iter()
            .filter(|(_, document)| document.changed);
        let changed: Vec<String> = changed.map(|(uri, _)| uri.clone()).collect();
        for uri in changed {
            let Some(file) = self.opened(&uri) else {
                continue;
            };
            let found = file.mistakes();
            let Some(document) = self.documents.get_mut(&uri) else {
                continue;
            };
            document.changed = false;
            document.found = found;
            let params = json!({
                "uri": uri,
                "version": document.version,
                "diagnostics": document.found.iter().map(diagnostic).collect::<Vec<_>>(),
            });
            self.publish(params)?;
        }
        Ok(())
    }

    fn handle_request(&self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let known = [
            "textDocument/completion",
            "textDocument/hover",
            "textDocument/documentSymbol",
            "textDocument/codeAction",
        ];
        if !known.contains(&method) {
            return Err((METHOD_NOT_FOUND, format!("unknown method `{method}`")));
        }
        let invalid = |why: &str| (INVALID_PARAMS, why.to_owned());
        let params = read::<DocumentParams>(params).map_err(|error| invalid(&error.to_string()))?;
        let uri = &params.text_document.uri;
        let file = self
            .opened(uri)
            .ok_or_else(|| invalid("this text is not open"))?;
        let at = || {
            params
                .position
                .ok_or_else(|| invalid("`position` is missing"))
        };
        Ok(match method {
            "textDocument/completion" => {
                let found = complete(&file.bundle, file.dialect.map(Into::into), at()?);
                let items = found.items.iter().enumerate().map(|(index, item)| {
                    json!({
                        "label": item.label,
                        "kind": completion_kind(item.kind),
                        "detail": item.detail,
                        "documentation": item.documentation,
                        "sortText": format!("{index:05}"),
                        "insertTextFormat": if item.snippet { 2 } else { 1 },
                        "textEdit": { "range": found.range, "newText": item.insert },
                    })
                });
                json!({ "isIncomplete": false, "items": items.collect::<Vec<_>>() })
            }
            "textDocument/hover" => {
                let hover = hover(&file.bundle, file.dialect.map(Into::into), at()?, None);
                hover.map_or(Value::Null, |hover| {
                    let contents = json!({ "kind": "plaintext", "value": hover.text });
                    json!({ "contents": contents, "range": hover.range })
                })
            }
            "textDocument/documentSymbol" => {
                let drawn = file.load().ok();
                let view = View {
                    open: Open::All,
                    root: None,
                };
                let drawn = drawn.and_then(|workflow| graph(workflow.program(), &view).ok());
                let found = symbols(&file.bundle, file.dialect, drawn.as_ref());
                Value::Array(found.iter().map(symbol).collect())
            }
            _ => {
                let found = self.documents.get(uri).map(|document| &document.found);
                let range = params.range.unwrap_or_default();
                Value::Array(actions(uri, found.into_iter().flatten(), range))
            }
        })
    }

    /// Returns an open text, together with the open texts in its folder that it may name.
    fn opened(&self, uri: &str) -> Option<OpenDocument> {
        let document = self.documents.get(uri)?;
        let path = url::Url::parse(uri)
            .ok()
            .and_then(|url| url.to_file_path().ok());
        let name = path
            .as_deref()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        let name = name.or_else(|| uri.rsplit('/').next()).unwrap_or(uri);
        let mut bundle = Bundle::single(name, document.text.clone());
        let dialect = dialect_of(&bundle, None);
        let folder = path.as_deref().and_then(Path::parent).map(Path::to_owned);
        // For a Logic Apps definition, the files in the same folder are not texts that it names, but its parameters.
        if let (Some(folder), Some(Dialect::Tea | Dialect::Canvas)) = (&folder, dialect) {
            for (other, document) in self.documents.iter().filter(|(other, _)| *other != uri) {
                let path = url::Url::parse(other)
                    .ok()
                    .and_then(|url| url.to_file_path().ok());
                let inside = path
                    .as_deref()
                    .and_then(|path| path.strip_prefix(folder).ok());
                if let Some(path) = inside.and_then(|path| path.to_str()) {
                    bundle.files.push(SourceFile {
                        path: path.to_owned(),
                        text: document.text.clone(),
                    });
                }
            }
        }
        Some(OpenDocument {
            bundle,
            folder,
            dialect,
        })
    }
}

impl Document {
    fn change(&mut self, changes: Vec<ContentChange>) {
        for change in changes {
            match change.range {
                None => self.text = change.text,
                Some(range) => {
                    let edit = TextEdit {
                        range,
                        new_text: change.text,
                    };
                    if let Some(text) = edited(&self.text, &[edit]) {
                        self.text = text;
                    }
                }
            }
        }
        self.changed = true;
    }
}

/// An open text, with its folder, its format, and the texts that it can name.
struct OpenDocument {
    bundle: Bundle,
    folder: Option<PathBuf>,
    dialect: Option<Dialect>,
}

impl OpenDocument {
    fn load(&self) -> Result<Workflow, LoadError> {
        let options = LoadOptions::default();
        load_bundle(self.bundle.clone(), self.folder.as_deref(), &options)
    }

    fn mistakes(&self) -> Vec<DiagnosticReport> {
        let found = match self.load() {
            Ok(workflow) => diagnostics(&workflow.with_scripts(), workflow.bundle()),
            Err(LoadError::Refused {
                diagnostics: found,
                bundle,
            }) => diagnostics(&found, &bundle),
            Err(_) => Vec::new(),
        };
        let own = self.bundle.file(0).map(|file| file.path.clone());
        let place = |mut one: DiagnosticReport| {
            if one.file != own {
                let file = one.file.take().unwrap_or_default();
                one.message = format!("{file}:{}:{}: {}", one.line, one.column, one.message);
                one.range = TextRange::default();
                one.fixes.clear();
            }
            one
        };
        // The editor may send files that are not workflows. They have no diagnostics.
        let other = |one: &DiagnosticReport| {
            matches!(&*one.code, "unknown-format" | "empty-file") && one.fixes.is_empty()
        };
        let found = found.into_iter().filter(|one| !other(one));
        found.map(place).collect()
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(params)
}

/// Returns the capabilities of the server.
fn initialized() -> Value {
    let triggers = ["@", "{", "'", "\"", ".", "(", "|", " ", ":"];
    json!({
        "serverInfo": { "name": "windlass", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2, "save": true },
            "completionProvider": { "triggerCharacters": triggers },
            "hoverProvider": true,
            "documentSymbolProvider": true,
            "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        },
    })
}

fn diagnostic(one: &DiagnosticReport) -> Value {
    let message = match &one.hint {
        Some(hint) => format!("{}\n{hint}", one.message),
        None => one.message.clone(),
    };
    json!({
        "range": one.range,
        "severity": if one.severity == "error" { 1 } else { 2 },
        "code": one.code,
        "source": "windlass",
        "message": message,
    })
}

/// Returns the fixes of those diagnostics that overlap with a range.
fn actions<'d>(
    uri: &str,
    found: impl Iterator<Item = &'d DiagnosticReport>,
    range: TextRange,
) -> Vec<Value> {
    let touched = found.filter(|one| one.range.start <= range.end && range.start <= one.range.end);
    let fixes = touched.flat_map(|one| one.fixes.iter().map(move |fix| (one, fix)));
    let action = |(one, fix): (&DiagnosticReport, &windlass_engine::Fix)| {
        let edits = fix.edits.iter();
        let edits = edits.map(|edit| json!({ "range": edit.range, "newText": edit.new_text }));
        let edits: Vec<Value> = edits.collect();
        json!({
            "title": fix.title,
            "kind": "quickfix",
            "isPreferred": true,
            "diagnostics": [diagnostic(one)],
            "edit": { "changes": { uri: edits } },
        })
    };
    fixes.map(action).collect()
}

/// Returns the number that the protocol has for a kind of completion.
fn completion_kind(kind: CompletionKind) -> u8 {
    match kind {
        CompletionKind::Function => 3,
        CompletionKind::Variable => 6,
        CompletionKind::Key => 10,
        CompletionKind::Value => 12,
        CompletionKind::Port | CompletionKind::Input => 5,
        CompletionKind::Snippet => 15,
        CompletionKind::Action => 18,
    }
}

fn symbol(symbol: &Symbol) -> Value {
    let kind = match &*symbol.kind {
        "loop" | "foreach" | "graph" => 3,
        "if" | "switch" | "parallel" | "lane" | "block" | "try" | "tried" => 2,
        "set" => 13,
        _ => 12,
    };
    let children: Vec<Value> = symbol.children.iter().map(self::symbol).collect();
    json!({
        "name": if symbol.name.is_empty() { &symbol.type_name } else { &symbol.name },
        "detail": symbol.type_name,
        "kind": kind,
        "range": symbol.range,
        "selectionRange": symbol.selection,
        "children": children,
    })
}
