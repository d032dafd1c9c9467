//! The origin of a workflow, and what guests (workflows that did not come from the operator) may do.
//! The permissions concern the machine and its network. This module enforces nothing: the executor and the loader
//! refuse.

use super::request::names_file;
use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use windlass_expression::Value;

/// The origin of a workflow.
/// The store has only the origin, not the permissions. The process that starts the actions determines what a guest
/// may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// From the operator: it may do what the operator may.
    #[default]
    Operator,
    /// From elsewhere, such as over HTTP: it may do what a [`Policy`] allows.
    Guest,
}

/// The stored form of the operator's origin. It has four bytes because earlier versions stored four permissions here.
const OPERATOR: [u8; 4] = [1, 1, 1, 1];
const GUEST: [u8; 4] = [0, 0, 0, 2];

impl Origin {
    /// Returns the form of the origin in the store and in the hash of a program.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        match self {
            Self::Operator => OPERATOR,
            Self::Guest => GUEST,
        }
    }
}

impl Encode for Origin {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.bytes().encode(encoder)
    }
}

impl<Context> Decode<Context> for Origin {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        match <[u8; 4]>::decode(decoder)? {
            OPERATOR => Ok(Self::Operator),
            [0 | 1, 0 | 1, 0 | 1, 0..=3] => Ok(Self::Guest),
            _ => Err(DecodeError::Other("an origin that is none")),
        }
    }
}
bincode::impl_borrow_decode!(Origin);

/// What a workflow may do to its machine and to the machine's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The workflow may run commands (`shell`, and its own handlers with `command`) and read the environment.
    pub shell: bool,
    /// The workflow may run scripts in languages that are not confined: Python, Prolog.
    pub scripts: bool,
    /// The workflow may read and write files of the machine.
    pub files: bool,
    /// The workflow may reach addresses that are not on the public internet.
    pub private_network: bool,
}

impl Policy {
    /// The policy of the operator's workflows.
    pub const TRUSTED: Self = Self {
        shell: true,
        scripts: true,
        files: true,
        private_network: true,
    };

    /// The policy of guests if the operator allows nothing more.
    pub const GUEST: Self = Self {
        shell: false,
        scripts: false,
        files: false,
        private_network: false,
    };

    /// Returns the flag that would allow an executor, or `None` if the policy allows it.
    #[must_use]
    pub fn denies(self, executor: &str) -> Option<&'static str> {
        match executor {
            "shell" if !self.shell => Some("--allow-shell"),
            // The rules of `validate.extraction` are Prolog.
            "python" | "prolog" | "validate.extraction" if !self.scripts => Some("--allow-scripts"),
            "appendFile" | "file.read" | "file.write" if !self.files => Some("--allow-files"),
            _ => None,
        }
    }

    /// Returns the flag that would allow an executor with these inputs, or `None` if the policy allows it.
    /// The inputs may be unevaluated, as their author wrote them.
    #[must_use]
    pub fn denies_inputs(self, executor: &str, inputs: &Value) -> Option<&'static str> {
        let needs_files = executor == "http" && names_file(inputs);
        (needs_files && !self.files).then_some("--allow-files")
    }
}
