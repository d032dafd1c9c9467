//! URIs: uriHost uriPath uriPathAndQuery uriPort uriQuery uriScheme.

use super::{Args, Function, eager};
use crate::Value;
use crate::wdl::eval::Outcome;
use url::Url;

pub(super) const TABLE: &[Function] = &[
    eager("uriHost", 1, 1, |ctx, args| {
        let uri = uri(args)?;
        ctx.text(uri.host_str().unwrap_or_default())
    }),
    eager("uriPath", 1, 1, |ctx, args| {
        let uri = uri(args)?;
        ctx.text(path(&uri))
    }),
    eager("uriPathAndQuery", 1, 1, |ctx, args| {
        let uri = uri(args)?;
        ctx.text(format!("{}{}", path(&uri), query(&uri)))
    }),
    eager("uriPort", 1, 1, |_, args| {
        let uri = uri(args)?;
        // As in .NET: -1 if the scheme has no port.
        Ok(uri
            .port_or_known_default()
            .map_or(Value::Int(-1), |port| Value::Int(i64::from(port))))
    }),
    eager("uriQuery", 1, 1, |ctx, args| {
        let uri = uri(args)?;
        ctx.text(query(&uri))
    }),
    eager("uriScheme", 1, 1, |ctx, args| {
        let uri = uri(args)?;
        ctx.text(uri.scheme())
    }),
];

fn uri(args: &Args) -> Outcome<Url> {
    let text = args.text(0)?.trim();
    Url::parse(text)
        .map_err(|_| args.wrong(0, "an absolute URI such as 'https://contoso.com/a?b=c'"))
}

fn path(uri: &Url) -> &str {
    match uri.path() {
        "" => "/",
        path => path,
    }
}

fn query(uri: &Url) -> String {
    match uri.query() {
        None | Some("") => String::new(),
        Some(query) => format!("?{query}"),
    }
}
