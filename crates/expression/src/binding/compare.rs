//! Compares two values for the conditions of loop nodes (docs/reference/canvas.md).

use crate::Value;
use crate::wdl::number::Number;
use std::cmp::Ordering;

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub const ALL: [Self; 6] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Returns true if the operator needs an order, which only numbers and texts have.
    #[must_use]
    pub fn orders(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Returns true if the comparison holds. `shown` is the value's name in messages.
    ///
    /// # Errors
    /// The values have no order.
    pub(super) fn holds(self, value: &Value, with: &Value, shown: &str) -> Result<bool, String> {
        if !self.orders() {
            return Ok((value == with) == (self == Self::Equal));
        }
        let order = order(value, with).ok_or_else(|| {
            let sign = self.as_str();
            let (value, with) = (super::port::excerpt(value), super::port::excerpt(with));
            format!(
                "{shown} is {value}: `{sign}` orders two numbers or two texts, and {with} is compared with it"
            )
        })?;
        Ok(match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        })
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => Some(a.cmp(b)),
        _ => Number::of(a)?.compare(Number::of(b)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_have_an_order_everything_is_equal_or_not() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let value = |json: &str| Value::from_json(json).unwrap();
        for (a, comparison, b, holds) in [
            ("1", Equal, "1.0", true),
            ("false", Equal, "false", true),
            ("null", Equal, "false", false),
            ("null", NotEqual, "false", true),
            ("[1]", Equal, "[1]", true),
            ("1", Less, "1.5", true),
            ("2", LessOrEqual, "2", true),
            ("2", Greater, "2", false),
            ("\"b\"", GreaterOrEqual, "\"a\"", true),
        ] {
            let found = comparison.holds(&value(a), &value(b), "x");
            assert_eq!(found, Ok(holds), "{a} {} {b}", comparison.as_str());
        }
        for (a, b) in [("null", "1"), ("\"1\"", "1"), ("true", "false")] {
            let error = Less.holds(&value(a), &value(b), "output `s` of `x`");
            let error = error.unwrap_err();
            assert!(error.starts_with("output `s` of `x` is "), "{error}");
        }
    }
}
