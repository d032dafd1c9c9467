//! Reads `operationOptions` and `runtimeConfiguration` of an action.

use super::LogicApps;
use crate::actions::{ActionReader, member};
use windlass_model::model::Name;
use windlass_source::diagnostic::did_you_mean;
use windlass_source::source::{Entry, Kind};
use windlass_value::words;

/// The valid values of `operationOptions`.
const OPTIONS: [&str; 11] = words! {
    Asynchronous DisableAsyncPattern DisableAutomaticDecompression EnableSchemaValidation
    FailWhenLimitsReached IncludeAuthorizationHeadersInOutputs OptimizedForHighThroughput Sequential
    SingleInstance SuppressWorkflowHeaders SuppressWorkflowHeadersOnResponse
};
const SECURE_DATA: &str = "for example secureData: { properties: [inputs, outputs] }";

impl ActionReader<'_, LogicApps> {
    /// Reports unknown keys. Without the report, a misspelt key would silently change how the action runs.
    /// `counts` are the keys of `concurrency`, which a Foreach and a trigger have.
    pub(super) fn known_configuration(
        &mut self,
        configuration: Option<&Entry>,
        counts: &[&'static str],
    ) {
        let Some(entry) = configuration else { return };
        let known = [
            "concurrency",
            "contentTransfer",
            "paginationPolicy",
            "secureData",
            "staticResult",
        ];
        let data = member(entry, "secureData").map(|data| (data, &["properties"][..]));
        let concurrency = member(entry, "concurrency").map(|part| (part, counts));
        if let Some((part, [key, ..])) = concurrency
            && part.value.entries().is_none()
            && !matches!(part.value.kind, Kind::Null)
        {
            let hint = format!("for example concurrency: {{ {key}: 1 }}");
            self.wrong_type(&part.value, "`concurrency`", "a map", hint);
        }
        let parts = [Some((entry, &known[..])), data, concurrency];
        for (part, known) in parts.into_iter().flatten() {
            let what = format!("`{}`", part.key);
            if part.value.entries().is_some()
                && let Some(mut fields) = self.fields(&part.value, &what, SECURE_DATA)
            {
                fields.allow(known);
                fields.finish(self);
            }
        }
    }

    /// Warns of a static result that is enabled: Logic Apps would not send the request.
    pub(super) fn static_result(&mut self, configuration: Option<&Entry>) {
        let result = configuration.and_then(|entry| member(entry, "staticResult"));
        let options = result.and_then(|result| member(result, "staticResultOptions"));
        let Some(options) = options else { return };
        let given = options.value.as_str().unwrap_or_default();
        if given.eq_ignore_ascii_case("Enabled") {
            let what = "static results are not supported: the action is executed";
            let hint = "`--stub FILE` answers an action without executing it";
            self.warning("not-supported", options.key_span, what, hint);
        }
    }

    pub(super) fn known_options(&mut self, options: Option<&Entry>) {
        let Some(entry) = options else { return };
        let given = entry.value.as_str().unwrap_or_default().split(',');
        for word in given.map(str::trim).filter(|word| !word.is_empty()) {
            if !OPTIONS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                let what = format!("unknown operation option `{word}`");
                let hint = did_you_mean(word, OPTIONS)
                    .unwrap_or_else(|| format!("it is ignored; known are: {}", OPTIONS.join(", ")));
                self.warning("unknown-value", entry.value.span, what, hint);
            }
        }
    }

    /// Reads `runtimeConfiguration.secureData`: `{properties: [inputs, outputs]}`.
    pub(super) fn secure_data(&mut self, configuration: Option<&Entry>, name: &Name) {
        let Some(data) = configuration.and_then(|entry| member(entry, "secureData")) else {
            return;
        };
        match member(data, "properties") {
            Some(properties) => self.read_secure(properties, name, SECURE_DATA),
            None => {
                let what = "`secureData` does not say what is secure";
                self.error("missing-key", data.key_span, what, SECURE_DATA);
            }
        }
    }

    /// Warns of a connector with `paginationPolicy`.
    /// Azure reads the further pages automatically. Windlass does not, so they would be silently missing.
    pub(super) fn pagination(&mut self, configuration: Option<&Entry>) {
        if let Some(policy) = configuration.and_then(|entry| member(entry, "paginationPolicy")) {
            let what = "`paginationPolicy` is not supported here: the handler returns all rows, or one \
                 page";
            let hint = "let its handler follow the links, or put it into an Until that does";
            self.warning("not-supported", policy.key_span, what, hint);
        }
    }
}
