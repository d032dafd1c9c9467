//! Addresses from answers in which a secret is masked, such as `?api_key=***&page=2`. The server repeated a secret of
//! the request, and outputs are stored without secrets. A masked part gets its text back only from the same part of the
//! action's own address, and only if both addresses have the same origin. So this origin has the secret already, and
//! receives it in the same place.

use super::previous::is_same;
use crate::execution_context::{has_secrets, holds_secret};
use crate::inputs::invalid;
use crate::mask::MASK;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use std::borrow::Cow;
use std::iter::repeat;
use windlass_model::model::Fault;

/// Returns the address with the secrets that its masks replace. `own` is the action's own address, with its secrets and
/// queries. `what` names the address in messages.
pub(super) fn unmasked(what: &str, address: Url, own: &Url) -> Result<Url, Fault> {
    let Some(masked) = masked_part(&address) else {
        return Ok(address);
    };
    let found =
        format!("{what} has `{masked}`, and `{MASK}` replaces a secret, which is not stored");
    if address.origin() != own.origin() {
        let own = own.origin().ascii_serialization();
        return Err(invalid(format!(
            "{found}: a secret of an answer is sent only to the server of `uri`, {own}"
        )));
    }
    restored(&address, own).ok_or_else(|| {
        invalid(format!(
            "{found}: `uri` has no secret in this place, so write ${{secret:NAME}} in the same place of `uri`, or send \
             the secret in a header"
        ))
    })
}

/// Returns a fault if a secret is masked in the action's own address.
pub(super) fn check(own: &Url) -> Result<(), Fault> {
    match masked_part(own) {
        None => Ok(()),
        Some(masked) => Err(invalid(format!(
            "`uri` has `{masked}`, and `{MASK}` replaces a secret of an earlier answer, which is not stored: write \
             ${{secret:NAME}} in this place"
        ))),
    }
}

/// Returns the first part of an address that has a masked secret. Without a secret in the program, `***` is only text.
fn masked_part(address: &Url) -> Option<&str> {
    let names = [address.username(), address.password().unwrap_or_default()];
    let path = address.path().split('/');
    let query = address.query().unwrap_or_default().split('&');
    let mut parts = names.into_iter().chain(path).chain(query);
    parts
        .find(|part| part.contains(MASK))
        .filter(|_| has_secrets())
}

fn restored(address: &Url, own: &Url) -> Option<Url> {
    let mut to = address.clone();
    let user = restored_part(address.username(), own.username())?;
    let password = restored_part(
        address.password().unwrap_or_default(),
        own.password().unwrap_or_default(),
    )?;
    to.set_username(user).ok()?;
    to.set_password(Some(password).filter(|text| !text.is_empty()))
        .ok()?;
    if address.path().contains(MASK) {
        let own = own.path().split('/').chain(repeat(""));
        let segments = address.path().split('/').zip(own);
        let segments = segments.map(|(segment, own)| restored_part(segment, own));
        let segments: Option<Vec<&str>> = segments.collect();
        to.set_path(&segments?.join("/"));
    }
    if let Some(query) = address.query() {
        let pairs = query.split('&').map(|pair| match pair.contains(MASK) {
            false => Some(pair),
            true => own_pair(pair, own),
        });
        let pairs: Option<Vec<&str>> = pairs.collect();
        to.set_query(Some(&pairs?.join("&")));
    }
    Some(to)
}

/// Returns `own` if a secret is masked in the part of an address, and the part otherwise.
fn restored_part<'a>(part: &'a str, own: &'a str) -> Option<&'a str> {
    match part.contains(MASK) {
        false => Some(part),
        true => Some(own).filter(|own| replaces(part, own)),
    }
}

/// Returns the pair of `own` with the same name, if exactly one value can be behind the mask.
fn own_pair<'a>(masked: &str, own: &'a Url) -> Option<&'a str> {
    let (name, value) = masked.split_once('=')?;
    let named = own.query()?.split('&').filter(|pair| {
        let own = pair.split_once('=');
        own.is_some_and(|(own, text)| decoded(own) == decoded(name) && replaces(value, text))
    });
    let mut named: Vec<&str> = named.collect();
    named.dedup();
    match *named {
        [pair] => Some(pair),
        _ => None,
    }
}

/// Returns true if a text has a secret, and the masked text can be the same text.
fn replaces(masked: &str, text: &str) -> bool {
    holds_secret(text.as_bytes()) && is_same(&decoded(masked), &decoded(text))
}

/// Decodes a part of an address.
fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}
