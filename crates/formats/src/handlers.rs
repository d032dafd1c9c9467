//! The programs and addresses that a file declares for its handlers and runners, by name.

use super::reader::Reader;
use windlass_model::model::{Handler, HandlerTarget, Name};
use windlass_source::source::{Entry, Kind, Node};

impl Reader<'_> {
    /// Reads `handlers`: for each name, a command or a URL.
    pub fn handlers(&mut self, entry: &Entry) -> Vec<Handler> {
        let hint = format!(
            "for example {}: {{ processor: {{ url: \"http://127.0.0.1:8080/process\" }} }}",
            entry.key
        );
        self.map(entry, &hint)
            .iter()
            .filter_map(|entry| self.handler_entry(entry, &hint))
            .collect()
    }

    fn handler_entry(&mut self, entry: &Entry, hint: &str) -> Option<Handler> {
        let what = format!("the handler `{}`", entry.key);
        let mut fields = self.fields(&entry.value, &what, hint)?;
        let command = fields.non_null(self, "command");
        let url = fields.non_null(self, "url");
        fields.finish(self);
        let target = match (command, url) {
            (Some(command), None) => HandlerTarget::Command(self.argv(command)?),
            (None, Some(url)) => HandlerTarget::Url(self.text(url, hint)?.to_owned()),
            _ => {
                let what = format!("{what} needs either `command` or `url`");
                self.error("missing-key", entry.key_span, what, hint);
                return None;
            }
        };
        Some(Handler {
            name: Name::from(entry.key.as_str()),
            target,
            span: entry.key_span,
        })
    }

    fn argv(&mut self, entry: &Entry) -> Option<Vec<String>> {
        let hint = "for example command: [python3, handler.py]";
        let words = match &entry.value.kind {
            Kind::Array(items) if !items.is_empty() => items
                .iter()
                .map(Node::as_str)
                .collect::<Option<Vec<&str>>>(),
            Kind::String(text) => Some(vec!["sh", "-c", text.text.as_str()]),
            _ => None,
        };
        if words.is_none() {
            self.wrong_type(&entry.value, "`command`", "a list of texts", hint);
        }
        Some(words?.into_iter().map(str::to_owned).collect())
    }
}
