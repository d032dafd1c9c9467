//! What kind of error something is: the word that programs match on, the HTTP status, the exit code
//! of a command and the title. This table is the only place where they are put together.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $code:ident = ($word:literal, $status:literal, $exit:literal, $title:literal);)+) => {
        /// The kind of an error. It stays the same, whatever the message says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $title] $(#[doc = $doc])* $code,)+
        }

        impl ErrorCode {
            const ALL: &[Self] = &[$(Self::$code),+];

            const fn row(self) -> (&'static str, u16, u8, &'static str) {
                match self {
                    $(Self::$code => ($word, $status, $exit, $title),)+
                }
            }
        }
    };
}

// Its word, the HTTP status, the exit code (docs/reference/cli.md), the title.
codes! {
    /// The request cannot be read, or asks for what makes no sense.
    BadRequest = ("bad-request", 400, 2, "The request cannot be read");
    /// The request has no token, or another one.
    Unauthorized = ("unauthorized", 401, 2, "A token is needed");
    /// The request to a webhook is not signed by its secret.
    Unsigned = ("unsigned", 401, 2, "The signature is not valid");
    /// A page of another site asks, or another server is meant.
    Forbidden = ("forbidden", 403, 2, "The request is not authorised");
    /// Only a process on the server's machine may ask for this.
    LocalOnly = ("local-only", 403, 2, "Only a command on the server's machine may ask for this");
    NotFound = ("not-found", 404, 2, "There is nothing at this address");
    /// The address takes other methods.
    MethodNotAllowed = ("method-not-allowed", 405, 2, "The address accepts other methods");
    UnknownRun = ("unknown-run", 404, 2, "Unknown run");
    UnknownWorkflow = ("unknown-workflow", 404, 2, "Unknown workflow");
    /// The name now has another workflow than the one that was to be replaced.
    WorkflowChanged = ("workflow-changed", 412, 2, "The workflow is another one by now");
    UnknownState = ("unknown-state", 404, 2, "Unknown state");
    /// The value between runs is another one than the caller expects.
    StateChanged = ("state-changed", 412, 2, "The state has another value by now");
    /// The store does not exist in the directory.
    NoStore = ("no-store", 404, 2, "The store does not exist");
    /// There is a store already where one was to be put.
    StoreExists = ("store-exists", 409, 2, "There is a store already");
    /// There is a run of this id already.
    RunExists = ("run-exists", 409, 2, "There is a run of this id");
    /// Another run has the same key of `concurrency`, and the policy is `skip`.
    SameKey = ("same-key", 409, 2, "Another run has the same concurrency key");
    /// The run has ended, and does not continue.
    RunEnded = ("run-ended", 409, 2, "The run has ended");
    NotRetried = ("not-retried", 409, 2, "The run did not end badly");
    NoPlace = ("no-place", 409, 2, "The run cannot be retried from there");
    /// Nothing in the run's workflow waits for the signal.
    NoSignal = ("no-signal", 409, 2, "The run waits for no such signal");
    /// The question that the signal answers does not accept the answer.
    RefusedAnswer = ("refused-answer", 422, 2, "The answer is refused");
    /// The wait that the signal answers is over.
    Answered = ("answered", 409, 2, "The question is not open any more");
    /// The address of a callback is too old.
    Expired = ("expired", 410, 2, "The address has expired");
    /// The run lacks a handler or a secret here, or this version cannot read its workflow.
    NotLoaded = ("not-loaded", 409, 3, "The run cannot continue with the server's configuration");
    /// The idempotency key was used for something else.
    KeyReused = ("key-reused", 422, 2, "The idempotency key was used for another request");
    TooLarge = ("too-large", 413, 2, "The body is too large");
    /// The body did not come in time.
    TooSlow = ("too-slow", 408, 2, "The body did not arrive in time");
    MediaType = ("media-type", 415, 2, "The body has another type");
    /// The workflow has mistakes.
    RefusedWorkflow = ("refused-workflow", 422, 3, "The workflow is refused");
    RefusedEdit = ("refused-edit", 422, 3, "The text cannot be edited so");
    /// The input is not what the workflow declares.
    RefusedInput = ("refused-input", 422, 2, "The input is refused");
    /// There is as much to do as the operator allows: later there may be room.
    Busy = ("busy", 429, 8, "The server is at capacity");
    /// The engine is not ready yet, or about to stop: ask again.
    Unavailable = ("unavailable", 503, 8, "The server is not ready");
    /// The store is locked, damaged, full or gone.
    Store = ("store", 503, 8, "The store cannot do it now");
    /// Anything else.
    Internal = ("internal", 500, 1, "The server failed");
}

impl ErrorCode {
    /// The code of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|code| code.word() == word).copied()
    }

    /// The word that identifies it in problem details, after `urn:windlass:`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().0
    }

    /// The status of an HTTP answer.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// The exit code of a command.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        self.row().2
    }

    /// What it is in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().3
    }
}
