//! Each text parses as an expression or template of each language, or its error has a place. A second parse has the
//! same result.

use windlass_expression::{Condition, Syntax, Template};

pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let mut taken = false;
    for syntax in [Syntax::Loom, Syntax::Azure, Syntax::Jinja] {
        match Template::parse(text, syntax) {
            Ok(template) => {
                let _ = template.references();
                let again = Template::parse(text, syntax);
                assert_eq!(again.as_ref(), Ok(&template));
                taken = true;
            }
            Err(error) => {
                assert!(error.offset <= text.len() && error.length >= 1, "{error:?}");
                assert!(text.is_char_boundary(error.offset), "{error:?}");
            }
        }
        let _ = Condition::parse(text, syntax);
    }
    taken
}
