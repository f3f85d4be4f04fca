//! Redacts URLs in errors about the command line: their credentials and queries.
//!
//! Separate because a mistyped URL does not parse, but still contains its secret. Therefore, any
//! argument with `:/`, or with `:` before `@`, is treated as a URL.

/// The text that replaces a secret.
const HIDDEN: &str = "***";

/// Replaces each of these arguments in a text with its redacted form.
pub(crate) fn without_secrets<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> String {
    words.fold(text.to_owned(), |text, word| {
        // With `--to=https://…`, an error quotes only the value.
        let value = word.split_once('=').filter(|_| word.starts_with('-')).map(|(_, value)| value);
        [Some(word), value].into_iter().flatten().fold(text, |text, word| {
            let shown = redacted(word);
            if shown == word {
                return text;
            }
            let escaped = format!("{word:?}");
            text.replace(word, &shown).replace(escaped.trim_matches('"'), &shown)
        })
    })
}

/// Replaces the user info and the query of an argument, if it looks like a URL.
fn redacted(word: &str) -> String {
    let scheme_end = word.find(":/").map(|at| at + word.get(at..).map_or(0, leading));
    let (scheme, rest) = word.split_at(scheme_end.unwrap_or(0));
    // Without a scheme, only `user:password@host` counts as an address.
    let user_end = rest.rfind('@').filter(|at| {
        scheme_end.is_some() || rest.get(..*at).is_some_and(|user| user.contains(':'))
    });
    let (user, rest) = user_end.map_or(("", rest), |at| (HIDDEN, rest.get(at..).unwrap_or("")));
    let query = rest.find(['?', '#']).filter(|_| scheme_end.is_some() || user_end.is_some());
    let (rest, query) = match query.and_then(|at| rest.get(..=at)) {
        Some(rest) => (rest, HIDDEN),
        None => (rest, ""),
    };
    format!("{scheme}{user}{rest}{query}")
}

/// Returns the number of colons and slashes at the beginning of a text.
fn leading(text: &str) -> usize {
    text.find(|c| !matches!(c, ':' | '/')).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_an_address_is_not_shown_however_it_is_mistyped() {
        for (word, shown) in [
            ("https://user:pw@host/x", "https://***@host/x"),
            ("https://user:p@w@host", "https://***@host"),
            ("https://user:p/w@host", "https://***@host"),
            ("https:/user:pw@host", "https:/***@host"),
            ("ttps://user@host?code=1#a", "ttps://***@host?***"),
            ("https://host/x?code=secret", "https://host/x?***"),
            ("user:pw@host", "***@host"),
            ("--to=https://user:pw@host", "--to=https://***@host"),
            ("shop/orders/billing", "shop/orders/billing"),
            ("someone@example.com", "someone@example.com"),
            ("what?", "what?"),
            ("https://host/x", "https://host/x"),
            ("", ""),
        ] {
            assert_eq!(redacted(word), shown, "{word}");
        }
        let words = ["publish", "--to=https://u:pw\n@h"];
        let text = "invalid 'https://u:pw\n@h' (\"https://u:pw\\n@h\")";
        let shown = without_secrets(text, words.into_iter());
        assert_eq!(shown, "invalid 'https://***@h' (\"https://***@h\")");
    }
}
