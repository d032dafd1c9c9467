//! Words of other formats and languages, each with a Loom word of the same meaning. They are only used for hints.
//! A word may have several meanings. The first meaning that is valid at the word's place is used.

/// Unknown keys, each with the key that it may mean.
const KEYS: [(&str, &str); 53] = [
    ("after", "runAfter"),
    ("args", "command"),
    ("argv", "command"),
    ("attempts", "count"),
    ("backoff", "type"),
    ("cmd", "command"),
    ("cmd", "run"),
    ("data", "body"),
    ("delay", "interval"),
    ("depends_on", "runAfter"),
    ("dependsOn", "runAfter"),
    ("do", "actions"),
    ("duration", "interval"),
    ("each", "foreach"),
    ("in", "foreach"),
    ("items", "foreach"),
    ("iterations", "limit"),
    ("json", "body"),
    ("list", "foreach"),
    ("max_attempts", "count"),
    ("max_iterations", "limit"),
    ("max_retries", "count"),
    ("maxAttempts", "count"),
    ("maxIterations", "limit"),
    ("maxRetries", "count"),
    ("needs", "runAfter"),
    ("over", "foreach"),
    ("parallelism", "concurrency"),
    ("params", "queries"),
    ("payload", "body"),
    ("pause", "delay"),
    ("poll_interval", "delay"),
    ("query", "queries"),
    ("retries", "count"),
    ("retries", "retry"),
    ("retryPolicy", "retry"),
    ("script", "run"),
    ("seconds", "interval"),
    ("sleep", "delay"),
    ("steps", "actions"),
    ("tasks", "actions"),
    ("then", "actions"),
    ("timeout", "limit"),
    ("until", "condition"),
    ("value", "on"),
    ("value", "inputs"),
    ("var", "name"),
    ("variable", "name"),
    ("verb", "method"),
    ("wait", "delay"),
    ("when", "condition"),
    ("while", "condition"),
    ("with", "inputs"),
];

/// Unknown types of actions, each with the type that it may mean.
const TYPES: [(&str, &str); 28] = [
    ("append", "appendToArrayVariable"),
    ("assign", "setVariable"),
    ("call", "activity"),
    ("command", "shell"),
    ("condition", "if"),
    ("delay", "wait"),
    ("do", "doUntil"),
    ("doWhile", "while"),
    ("each", "foreach"),
    ("exec", "shell"),
    ("fail", "terminate"),
    ("fetch", "http"),
    ("file", "appendFile"),
    ("filter", "query"),
    ("for", "foreach"),
    ("forEach", "foreach"),
    ("function", "activity"),
    ("increment", "incrementVariable"),
    ("loop", "until"),
    ("map", "select"),
    ("request", "http"),
    ("rest", "http"),
    ("return", "terminate"),
    ("sequence", "scope"),
    ("set", "setVariable"),
    ("signal", "waitForSignal"),
    ("sleep", "wait"),
    ("try", "scope"),
];

/// Returns the known key that an unknown key probably means.
pub(super) fn key(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let meant = KEYS.iter().filter(|(other, _)| *other == word);
    let mut meant = meant.map(|(_, meant)| *meant);
    meant.find(|meant| known.contains(meant))
}

/// Loom's words in hints, each with the corresponding word of Logic Apps definitions.
const AZURE: [(&str, &str); 12] = [
    ("type: http", "type: Http"),
    ("setVariable", "SetVariable"),
    ("initializeVariable", "InitializeVariable"),
    ("condition: \"@", "expression: \"@"),
    ("the terminate action", "the Terminate action"),
    ("use a scope", "use a Scope"),
    ("put it on the retry action", "put it under `retryPolicy`"),
    (
        "a delay: for example delay: 10s",
        "a Wait action in its body",
    ),
    ("limit: 10", "limit: { count: 10 }"),
    ("or set it with SetVariable", "or with InitializeVariable"),
    ("add it under `handlers`, or pass it", "pass it"),
    ("${secret:API_TOKEN}", "@secret('API_TOKEN')"),
];

/// Translates a hint to the words of a Logic Apps definition.
pub(super) fn in_azure(hint: String) -> String {
    AZURE
        .iter()
        .fold(hint, |hint, (loom, azure)| hint.replace(loom, azure))
}

/// Returns a hint about an unknown type.
pub(super) fn action_type(word: &str) -> Option<String> {
    if word.eq_ignore_ascii_case("break") || word.eq_ignore_ascii_case("continue") {
        let word = word.to_ascii_lowercase();
        return Some(format!(
            "it is a key of an action of the loop: {word}_when: \"@…\""
        ));
    }
    let mut types = TYPES.iter();
    let (_, meant) = types.find(|(other, _)| other.eq_ignore_ascii_case(word))?;
    Some(format!("did you mean `{meant}`?"))
}

/// Returns the loop variable that a bare name probably means.
pub(super) fn loop_variable(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "index" | "i" | "iteration" | "n" | "loop_index" => Some("loopIndex"),
        "count" | "loop_count" | "iterations" => Some("loopCount"),
        "feedback" | "loop_feedback" => Some("loopFeedback"),
        "result" | "last" | "previous" | "loop_result" => Some("loopResult"),
        _ => None,
    }
}
