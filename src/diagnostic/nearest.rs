//! The known name closest to a misspelt one. It never decides that a name is wrong.

use std::borrow::Cow;

/// Longer names are not compared: the work is bounded by the product of the lengths.
const MAX_LENGTH: usize = 64;

/// The candidate closest to `name`, without case; none when nothing is close enough to be what
/// was meant: more than a third of the letters would have to change.
pub fn nearest<'a, I, S>(name: &str, candidates: I) -> Option<&'a str>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<str> + ?Sized + 'a,
{
    let wanted = folded(name)?;
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(AsRef::as_ref)
        .filter_map(|candidate| {
            let distance = distance(&wanted, &folded(candidate)?);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean …?` for the end of a message, or nothing.
pub fn did_you_mean<'a, I, S>(name: &str, candidates: I) -> Option<String>
where
    I: IntoIterator<Item = &'a S>,
    S: AsRef<str> + ?Sized + 'a,
{
    nearest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}

fn folded(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.len() > MAX_LENGTH {
        None
    } else if name.bytes().any(|byte| byte.is_ascii_uppercase()) || !name.is_ascii() {
        Some(Cow::Owned(name.to_lowercase()))
    } else {
        Some(Cow::Borrowed(name))
    }
}

/// Letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous_a = None;
    for (row, letter_a) in a.chars().enumerate() {
        let mut current = Vec::with_capacity(b.len() + 1);
        current.push(row + 1);
        let mut left = row + 1;
        let mut previous_b = None;
        for (column, letter_b) in b.iter().copied().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX);
            let mut best = at(&last, column) + usize::from(letter_a != letter_b);
            best = best.min(left + 1).min(at(&last, column + 1) + 1);
            if previous_a == Some(letter_b) && previous_b == Some(letter_a) && column > 0 {
                best = best.min(at(&before_last, column - 1).saturating_add(1));
            }
            current.push(best);
            left = best;
            previous_b = Some(letter_b);
        }
        before_last = std::mem::replace(&mut last, current);
        previous_a = Some(letter_a);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_slip_of_a_finger() {
        let known = ["equals", "empty", "length", "Check_Status"];
        assert_eq!(nearest("eqauls", known), Some("equals"));
        assert_eq!(nearest("LENGHT", known), Some("length"));
        assert_eq!(nearest("check_statu", known), Some("Check_Status"));
        assert_eq!(nearest("entirely", known), None);
        assert_eq!(nearest("", known), None);
        let owned = vec![String::from("status")];
        assert_eq!(nearest("statsu", &owned), Some("status"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
