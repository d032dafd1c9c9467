//! The types of `authentication` of a request: docs/reference/actions.md.

use super::{Case, Key, Map, OPEN, RequiredSets, TEXT, Type, key, required};

pub(super) const TYPE: Type = Type::Map(&Map {
    keys: &[&[required("type", Type::AnyCaseOrExpression(&["Basic", "Bearer", "Raw", "OAuth2", "ActiveDirectoryOAuth", "AwsSigV4"]), "")]],
    cases: TYPES,
    ..OPEN
});

/// Makes the keys of a type of authentication.
const fn authentication(is: &'static str, keys: &'static [&'static [Key]]) -> Case {
    Case { key: "type", is, then: Map { keys, ..OPEN } }
}

const fn text(name: &'static str) -> Key {
    key(name, TEXT, "")
}

/// The types of `authentication`, each with its keys. `Bearer` needs one of them.
pub(crate) const TYPES: &[Case] = &[
    authentication("Basic", &[&[required("username", TEXT, ""), required("password", TEXT, "")]]),
    Case {
        key: "type",
        is: "Bearer",
        then: Map { keys: &[&[text("token"), text("value")]], required_sets: RequiredSets::Any(&[&["token"], &["value"]]), ..OPEN },
    },
    authentication("Raw", &[&[required("value", TEXT, "the whole header Authorization")]]),
    authentication(
        "OAuth2",
        &[&[
            required("tokenUrl", TEXT, ""),
            required("clientId", TEXT, ""),
            required("clientSecret", TEXT, ""),
            text("scope"),
            text("audience"),
            text("resource"),
            key("clientAuthentication", Type::Words(&["header", "body"]), "where the client's id and secret are sent; default header"),
        ]],
    ),
    authentication(
        "ActiveDirectoryOAuth",
        &[&[
            required("tenant", TEXT, ""),
            required("audience", TEXT, ""),
            required("clientId", TEXT, ""),
            required("secret", TEXT, ""),
            key("authority", TEXT, "another server"),
        ]],
    ),
    authentication(
        "AwsSigV4",
        &[&[
            required("accessKeyId", TEXT, ""),
            required("secretAccessKey", TEXT, ""),
            required("region", TEXT, ""),
            required("service", TEXT, ""),
            text("sessionToken"),
        ]],
    ),
];
