//! Any text parses, or says where it does not; nothing panics and nothing overflows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass::expression::{Condition, Syntax, Template};

fuzz_target!(|text: &str| {
    for syntax in [Syntax::Loom, Syntax::Azure, Syntax::Jinja] {
        match Template::parse(text, syntax) {
            Ok(template) => {
                let _ = template.references();
                let again = Template::parse(text, syntax);
                assert_eq!(again.as_ref(), Ok(&template));
            }
            Err(error) => {
                assert!(error.offset <= text.len() && error.length >= 1);
                assert!(text.is_char_boundary(error.offset));
            }
        }
        let _ = Condition::parse(text, syntax);
    }
});
