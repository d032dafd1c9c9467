//! Actions of TEA that Windlass does not have, and after which TEA continues (docs/reference/tea.md).
//! TEA does nothing for the key `action` on a node. If a service or package is missing, TEA answers with an error and
//! continues.

use super::action::{all_names, canonical};
use super::builder::{assign, expression, object, with_result};
use super::node::{LoweredNode, ResultTarget};
use super::{SourcePosition, Tea};
use windlass_expression::{Template, Value};
use windlass_source::diagnostic::nearest;
use windlass_source::source::{Entry, Node};

/// Makes a table whose rows may be long.
macro_rules! rows {
    ($($key:literal => $value:expr),+ $(,)?) => {
        [$(($key, $value)),+]
    };
}

/// The answers of TEA if a service or package is missing. Each is for an action's name or a prefix of names.
/// The first match is used. In an answer, `result` has the arguments that [`SEEN`] lists.
const ANSWERS: [(&str, &str); 24] = rows! {
    "web.search" => "{'success': false, 'error': 'PERPLEXITY_API_KEY environment variable not set. Get your API key from https://perplexity.ai', 'error_type': 'configuration'}",
    "web.ai_scrape" => "{'success': false, 'error': 'SCRAPEGRAPH_API_KEY environment variable not set. Get your API key from https://scrapegraphai.com', 'error_type': 'configuration'}",
    "web.scrape" => FIRECRAWL,
    "web.crawl" => FIRECRAWL,
    "github.search_issues" => "{'success': false, 'error': 'GITHUB_TOKEN environment variable not set. Create a token at https://github.com/settings/tokens', 'error_type': 'configuration'}",
    "graph.algorithm" => DUCKPGQ,
    "graph.shortest_path" => DUCKPGQ,
    "graph.list_graphs" => DUCKPGQ,
    "graph.vector_search" => NEO4J,
    "graph.check_vector_support" => NEO4J,
    "graph.create_vector_index" => NEO4J,
    "graph.drop_vector_index" => NEO4J,
    "graph.list_vector_indexes" => NEO4J,
    "graph.create" => DUCKPGQ,
    "graph.drop" => DUCKPGQ,
    "graph." => "{'success': false, 'error': \"No graph database installed. Install with: pip install 'pycozo[embedded]' (CozoDB), pip install kuzu (Kuzu/Bighorn), or pip install duckdb (DuckPGQ)\", 'error_type': 'dependency_missing'}",
    "neo4j.gds_" => "{'success': false, 'error': 'Neo4j backend not configured. Enable with settings.graph.backend: neo4j', 'error_type': 'configuration_error'}",
    "neo4j." => "{'success': false, 'error': 'Neo4j backend not configured. Use enable_graph=True with neo4j:// URI', 'error_type': 'configuration_error'}",
    "llamaextract.extract" => "{'success': false, 'error': 'file parameter is required', 'error_type': 'validation'} \
        if not result.file else \
        {'success': false, 'error': 'Either schema, agent_id, or agent_name must be provided', 'error_type': 'validation'} \
        if not (result.schema or result.agent_id or result.agent_name) else \
        {'success': false, 'error': 'LLAMAEXTRACT_API_KEY or LLAMAPARSE_API_KEY environment variable not set', 'error_type': 'configuration'}",
    "rag.llamaindex.create_index" => "{'error': 'LlamaIndex not available for index creation', 'success': false}",
    "reason.dspy.compile" => "{'error': 'DSPy not installed. Install with: pip install the_edge_agent[dspy]', 'success': false, 'compiled': false, 'dspy_available': false}",
    "reason.dspy.optimize" => "{'error': 'DSPy not installed. Install with: pip install the_edge_agent[dspy]', 'success': false, 'dspy_available': false}",
    "llm.embed" => "{'error': 'Embeddings require local backend with embedding=True or explicit API configuration', 'success': false}",
    "code.execute" => "{'success': false, 'stdout': '', 'stderr': '', 'return_value': none, 'error': 'Code execution is disabled. Enable with YAMLEngine(enable_code_execution=True)', 'execution_time_ms': 0.0}",
};
const FIRECRAWL: &str = "{'success': false, 'error': 'FIRECRAWL_API_KEY environment variable not set. Get your API key from https://firecrawl.dev', 'error_type': 'configuration'}";
const DUCKPGQ: &str = "{'success': false, 'error': 'DuckPGQ not available. Install with: pip install duckdb', 'error_type': 'dependency_missing'}";
const NEO4J: &str = "{'success': false, 'error': 'Neo4j not available. Install with: pip install neo4j', 'error_type': 'dependency_missing'}";

/// Actions that TEA has and Windlass does not, by name or prefix, each with what to write instead.
const INSTEAD: [(&str, &str); 11] = rows! {
    "a2a. agent. plan. reason. learn. textgrad. tools. bmad." => "write it as nodes around `llm.call`",
    "llm.chat llm.stream llm.tools llm.local. llm.similarity" => "use `llm.call` with a server or a command",
    "llm.retry" => "use `retry.loop`",
    "rag. vector. ltm. catalog. data.consolidate data.create_table data.delete data.insert \
     data.query data.update firestore. embedding. semtools. academic. github. llamaextract. \
     auth. opik. memory.mem0. memory.cloud_ memory.vector_ memory.manifest_ memory.embed \
     memory.embed_batch memory.backfill_embeddings memory.grep memory.search_content \
     memory.sql_query memory.summarize" => "call the service with `http`, `shell` or an activity",
    "git. storage." => "use `shell`, or `file.read` and `file.write`",
    "session. checkpoint. trace. obs." => "leave it out: each step is stored, and `windlass history` shows it",
    "cache. ratelimit." => "call the action itself; `--max-effects-per-host` bounds calls at a time",
    "error." => "read `state.__error__` in a condition or in `run`",
    "http.respond" => "write keys of the state: it is the result of the run",
    "secrets." => "write `{{ secrets.NAME }}`",
    "csv. schema. text. markdown. context. code. json.stringify json.transform data.filter \
     validate.input validate.generate_prompt" => "compute it with `run`",
};

/// The answer of `llm.call` if it has no question.
const NO_QUESTION: &str =
    "{'error': 'Missing required parameter: prompt or messages', 'success': false}";

/// The arguments of an action that its answer depends on.
const SEEN: [&str; 4] = ["file", "schema", "agent_id", "agent_name"];

/// Returns true if `known` is the action's name, or a prefix of it that ends with `.` or `_`.
fn fits(known: &str, name: &str) -> bool {
    known == name || (known.ends_with(['.', '_']) && name.starts_with(known))
}

/// Returns the answer of TEA for an action that it cannot execute.
fn answer(name: &str) -> Option<&'static str> {
    let found = ANSWERS.iter().find(|(known, _)| fits(known, name));
    found.map(|(_, text)| *text)
}

/// Returns what to write instead of an action that only TEA has.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    let any = |names: &str| names.split(' ').any(|known| fits(known, name));
    let found = INSTEAD.iter().find(|(names, _)| any(names));
    found.map(|(_, hint)| *hint)
}

/// Returns true if a node has an `action` that Windlass does not have, unless it is a misspelling of a known action.
fn is_absent(node: &Node) -> bool {
    let name = node.get("action").and_then(Node::as_str).map(canonical);
    name.is_some_and(|name| {
        !all_names().any(|known| known == name)
            && (answer(&name).is_some()
                || instead(&name).is_some()
                || nearest(&name, all_names()).is_none())
    })
}

impl<'n> Tea<'_, 'n> {
    /// Returns true if `action` on a node does nothing, as in TEA.
    /// In a file with an unknown action, `action` does nothing on any node. Otherwise only some actions of the file
    /// would be executed.
    pub(super) fn ignores_actions(&self) -> bool {
        self.nodes.iter().any(|(_, node)| is_absent(node))
    }

    pub(super) fn ignored_action(&mut self, entry: &'n Entry) {
        let name = entry.value.as_str().unwrap_or_default();
        let what = format!("`action: {name}` does nothing, as in TEA");
        let name = canonical(name);
        let hint = if all_names().any(|known| known == name) {
            "another `action` of this file is not supported; write `uses` to have this one done"
        } else {
            instead(&name).unwrap_or("it is not supported; docs/reference/tea.md says what is")
        };
        self.warning("ignored-action", entry.value.span, what, hint);
    }

    /// Makes a step that returns TEA's answer for an action that TEA cannot execute either. Also warns of the action.
    pub(super) fn error_answer(
        &mut self,
        name: &str,
        named: &Entry,
        with: &[&'n Entry],
        target: &ResultTarget,
        place: &SourcePosition,
    ) -> Option<LoweredNode> {
        let asks = |key: &str| {
            with.iter().any(|entry| entry.key == key)
                || self.llm.iter().any(|(own, _)| &**own == key)
        };
        let text = match name {
            "llm.call" if asks("prompt") || asks("messages") => return None,
            "llm.call" => {
                let near = |entry: &&Entry| nearest(&entry.key, ["prompt", "messages"]).is_some();
                if with.iter().copied().any(|entry| near(&entry)) {
                    return None;
                }
                NO_QUESTION
            }
            _ => answer(name)?,
        };
        let what = match name {
            "llm.call" => "`llm.call` has no `prompt` and no `messages`".to_owned(),
            _ => format!("`{name}` is not supported"),
        };
        let hint = "its result is an error with `success: false`, as in TEA without its service";
        self.warning("no-service", named.value.span, what, hint);
        let mut seen = Vec::with_capacity(SEEN.len());
        if name == "llamaextract.extract" {
            for key in SEEN {
                let given = with.iter().copied().find(|entry| entry.key == key);
                let value = match given {
                    Some(entry) => self.template(&entry.value),
                    None => Template::constant(Value::Null),
                };
                seen.push((key, value));
            }
        }
        let value = with_result(&object(seen), expression(self, text));
        let then = self.store_result(target, &value, place);
        Some(LoweredNode::new(name, assign(then, Some(value))))
    }
}
