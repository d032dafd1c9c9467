//! Finds the known name that is most similar to a misspelt one.

/// Returns the candidate that `name` is most likely a misspelling of, compared without case; `None` if no candidate is
/// similar. To limit the work, long names are not compared, and only the first thousand candidates are compared.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const MAX_LENGTH: usize = 64;
    const MAX_COMPARED: usize = 1000;
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().max(name.len()) <= MAX_LENGTH)
        .take(MAX_COMPARED)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, &candidate.to_lowercase());
            (distance, candidate)
        })
        // At most a third of the letters may be wrong. With more, it is probably another word.
        .filter(|(distance, candidate)| {
            *distance <= (name.chars().count().max(candidate.chars().count()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the hint `did you mean …?` if a candidate is similar.
pub fn did_you_mean<'a, S: AsRef<str> + ?Sized + 'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a S>,
) -> Option<String> {
    let candidates = candidates.into_iter().map(AsRef::as_ref);
    nearest(name, candidates).map(|found| format!("did you mean `{found}`?"))
}

/// Lists the members of an object, for a message about a member that is missing.
pub fn members<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<&str> = names.by_ref().take(8).collect();
    if names.next().is_some() {
        shown.push("…");
    }
    match shown.is_empty() {
        true => String::from("the object is empty"),
        false => format!("it has {}", shown.join(", ")),
    }
}
