//! What an agent can read before it writes a workflow.
//! These are the references of the formats, recipes, and the JSON Schemas.

use rmcp::model::{Resource, ResourceContents};
use windlass_engine::{Dialect, json_schema};

/// The beginning of the address of every resource.
const SCHEME: &str = "windlass://";

const PAGE_TYPE: &str = "text/markdown";
const SCHEMA_TYPE: &str = "application/schema+json";

/// A page of the documentation.
pub struct Page {
    /// The last part of the page's address.
    name: &'static str,
    about: &'static str,
    pub text: &'static str,
}

macro_rules! page {
    ($folder:literal, $name:literal, $about:literal) => {
        Page {
            name: $name,
            about: $about,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/docs/",
                $folder,
                "/",
                $name,
                ".md"
            )),
        }
    };
}

const PAGES: [Page; 17] = [
    page!(
        "reference",
        "loom",
        "The format Loom: files, loops, retries, schedules"
    ),
    page!("reference", "tea", "The format of The Edge Agent"),
    page!(
        "reference",
        "canvas",
        "The format canvas: graphs of nodes and ports"
    ),
    page!("reference", "azure", "Logic Apps definitions"),
    page!(
        "reference",
        "actions",
        "All actions with their inputs and outputs"
    ),
    page!(
        "reference",
        "expressions",
        "Functions of expressions, with examples"
    ),
    page!(
        "reference",
        "loops",
        "What loops do: limits, statuses, results"
    ),
    page!(
        "reference",
        "long-operations",
        "Operations that a server executes: start, poll, result, cancel"
    ),
    page!("reference", "rate-limits", "Rates that several runs share"),
    page!("reference", "secrets", "Secrets and secure values"),
    page!(
        "guides",
        "approvals",
        "Questions to people, and their answers"
    ),
    page!("guides", "state", "Values between runs"),
    page!("guides", "schedules", "Runs by time"),
    page!("guides", "triggers", "Runs that a webhook or a file starts"),
    page!("guides", "cookbook", "What does the work of other tools"),
    page!("guides", "polling", "Recipes for polling"),
    page!("guides", "paging", "Recipes for pages"),
];

/// The formats for which there is a JSON Schema.
const SCHEMAS: [Dialect; 4] = [Dialect::Loom, Dialect::Azure, Dialect::Tea, Dialect::Canvas];

/// Returns the page of a format, for `workflow_reference`.
pub fn reference(format: &str) -> Option<&'static Page> {
    Dialect::parse(format)?;
    PAGES.iter().find(|page| page.name == format)
}

pub fn list() -> Vec<Resource> {
    let pages = PAGES.iter().map(|page| {
        Resource::new(format!("{SCHEME}docs/{}", page.name), page.name)
            .with_description(page.about)
            .with_mime_type(PAGE_TYPE)
            .with_size(page.text.len() as u64)
    });
    let schemas = SCHEMAS.iter().map(|format| {
        let format = format.as_str();
        Resource::new(
            format!("{SCHEME}schema/{format}"),
            format!("{format}.schema.json"),
        )
        .with_description(format!("The JSON Schema of the format {format}"))
        .with_mime_type(SCHEMA_TYPE)
    });
    pages.chain(schemas).collect()
}

/// Reads the resource with this address.
pub fn read(address: &str) -> Option<ResourceContents> {
    let (text, media_type) = match address.strip_prefix(SCHEME)?.split_once('/')? {
        ("docs", name) => (PAGES.iter().find(|page| page.name == name)?.text, PAGE_TYPE),
        ("schema", name) => (json_schema(Dialect::parse(name)?)?, SCHEMA_TYPE),
        _ => return None,
    };
    Some(ResourceContents::text(text, address).with_mime_type(media_type))
}
