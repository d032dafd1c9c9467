//! The tokens of a server.
//! They are in a file with a table of names, roles and tokens. The file is read again when it changes.

use super::roles::Access;
use ring::hmac;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of tokens. It is limited because each request is compared with all tokens.
const MAX_TOKENS: usize = 1_000;

/// Maximum size of a token file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// The name of the token if the file has only one token, without a name.
const ONLY: &str = "admin";

/// The text that is signed to compare two tokens. A session has other signed bytes, so this signature is not valid
/// for one.
const PROOF: &[u8] = b"windlass token";

/// A token in a form for comparison, which reveals neither the token's length nor its beginning.
pub(super) struct Token {
    pub name: String,
    pub access: Access,
    pub key: hmac::Key,
}

impl Token {
    fn new(name: &str, access: Access, token: &str) -> Self {
        Self {
            name: name.to_owned(),
            access,
            key: hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes()),
        }
    }
}

/// The tokens that a server accepts.
#[derive(Clone, Default)]
pub struct Tokens(Vec<Arc<Token>>);

impl Tokens {
    /// Creates a single token with all rights.
    #[must_use]
    pub fn admin(token: &str) -> Self {
        Self(vec![Arc::new(Token::new(ONLY, Access::Admin, token))])
    }

    /// Reads a file with lines of `NAME ROLE TOKEN`, or with only a token. Also returns the file's text.
    ///
    /// # Errors
    /// The message says what is wrong. It has no text of the file, because the text may be a token.
    pub fn read(path: &Path) -> Result<(Self, String), String> {
        let of_file = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = read_text(path).map_err(|error| of_file(&error))?;
        let tokens = Self::parse(&text).map_err(|why| of_file(&why))?;
        Ok((tokens, text))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().zip(1_usize..);
        let lines = lines.map(|(line, number)| (line.trim(), number));
        let lines: Vec<_> = lines
            .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
            .collect();
        if let [(token, number)] = lines.as_slice()
            && !token.contains(char::is_whitespace)
        {
            visible(token, *number)?;
            return Ok(Self::admin(token));
        }
        if lines.is_empty() {
            return Err(String::from("it holds no token"));
        }
        if lines.len() > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} tokens"));
        }
        let (mut names, mut known) = (BTreeSet::new(), BTreeSet::new());
        let mut tokens = Vec::new();
        for (line, number) in lines {
            let wrong = |why: &str| Err(format!("line {number}: {why}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, role, token] = words.as_slice() else {
                return wrong("expected `NAME ROLE TOKEN`");
            };
            if !is_name(name) {
                return wrong("a name has 1 to 64 letters, digits and -_.@");
            }
            let Some(access) = Access::of_role(role) else {
                return wrong("the second word must be a role: view, operate or admin");
            };
            visible(token, number)?;
            if !names.insert(*name) {
                return wrong("a line above has the same name");
            }
            if !known.insert(*token) {
                return wrong("a line above has the same token");
            }
            tokens.push(Arc::new(Token::new(name, access, token)));
        }
        Ok(Self(tokens))
    }

    /// Returns true if the server has no tokens. Then every client has all rights.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.0.iter()
    }

    /// Returns the accepted token that equals a request's token.
    /// The time of the comparison does not depend on the tokens.
    pub(super) fn find(&self, given: &str) -> Option<&Arc<Token>> {
        let given = hmac::Key::new(hmac::HMAC_SHA256, given.as_bytes());
        let proof = hmac::sign(&given, PROOF);
        let mut tokens = self.0.iter();
        tokens.find(|token| hmac::verify(&token.key, PROOF, proof.as_ref()).is_ok())
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|token| (&token.name, token.access));
        f.debug_map().entries(names).finish()
    }
}

fn visible(token: &str, line: usize) -> Result<(), String> {
    match token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(format!("line {line}: a token must be ASCII without spaces")),
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
    match read.map_err(|error| error.to_string())? as u64 {
        0..=MAX_FILE => Ok(text),
        _ => Err(format!("it has more than {MAX_FILE} bytes")),
    }
}
