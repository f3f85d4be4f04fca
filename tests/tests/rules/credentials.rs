//! No credential survives in the stored part of a response, whatever its value, its spelling and
//! the text around it.

use delivery::subscription::credentials::{Credentials, Ending, HIDDEN};
use lastmile_tests::spellings::spellings;
use proptest::collection::vec;
use proptest::prelude::*;

/// The text around an echo, with characters that begin or continue each encoding.
const AROUND: &str = r#"[a-zA-Z0-9+/%\\ =:_"{}-]{0,12}"#;
/// The text before an echo, without an escape character that would consume the first characters of
/// the echo.
const BEFORE: &str =
    r#"[%\\a-fu0-9]{0,6}[ :"=][a-zA-Z0-9+/=:_"{}-]{0,8}|[a-zA-Z0-9+/=:_"{}-]{0,12}"#;
/// A value that is hidden anywhere.
const VALUE: &str = r"[!-~]{4,30}|[!-~]{2,6} [!-~]{2,20}|[a-zäöü日\u{1f600}]{4,10}";

fn credentials(values: &[String]) -> Credentials {
    let mut credentials = Credentials::default();
    values.iter().for_each(|value| credentials.add(value.as_bytes()));
    credentials
}

/// The text after hiding. A line break replaces each hidden part.
fn kept(credentials: &Credentials, text: &str, ending: Ending) -> String {
    let hidden = credentials.hide(text.as_bytes(), ending);
    let shown =
        hidden.map_or(text.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned());
    shown.replace(HIDDEN, "\n")
}

proptest! {
    // Each case has other values, so it builds an automaton without optimisation. There are
    // therefore few cases.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_spelling_of_a_credential_survives_in_any_surrounding(
        values in vec(VALUE, 1..4),
        before in BEFORE,
        after in AROUND,
    ) {
        let credentials = credentials(&values);
        for value in &values {
            for spelling in spellings(value) {
                let text = format!("{before}{}{after}", spelling.echo);
                let kept = kept(&credentials, &text, Ending::Whole);
                // A short core may also be in the surrounding text by chance.
                let survives = kept.contains(&spelling.core) && !(format!("{before}\n{after}").contains(&spelling.core));
                prop_assert!(!survives, "{:?} in {} left {}", spelling, text, kept);
            }
        }
    }

    #[test]
    fn no_beginning_of_a_credential_is_left_where_a_text_is_cut(
        value in "[!-~]{12,40}",
        before in "[ .,]{0,5}",
        percent in 0..100_usize,
    ) {
        let credentials = credentials(std::slice::from_ref(&value));
        for spelling in spellings(&value) {
            let text = format!("{before}{}", spelling.echo);
            let cut = &text[..text.floor_char_boundary(text.len() * percent / 100)];
            let kept = kept(&credentials, cut, Ending::Cut);
            // At most this is left: an incomplete escape or three characters of base64, and encoded
            // text from before the value.
            let left = kept.trim_start_matches([' ', '.', ',']).trim_end();
            prop_assert!(left.len() <= 10, "{:?} of {:?} left {}", cut, spelling, kept);
        }
    }

    #[test]
    fn a_text_without_any_credential_is_unchanged(
        text in "[a-zA-Z ,.{}:\"%\\\\\n]{0,1500}",
        values in vec("[0-9;<>]{8,20}", 1..5),
    ) {
        prop_assert_eq!(credentials(&values).hide(text.as_bytes(), Ending::Whole), None);
    }

    #[test]
    fn a_short_value_takes_nothing_but_itself(
        words in vec("[a-z]{4,9}", 0..20),
        value in "[0-9a-z]{1,3}",
    ) {
        let text = words.join(" ");
        prop_assert_eq!(kept(&credentials(std::slice::from_ref(&value)), &text, Ending::Whole), text.clone());
        let echo = format!("{text} <{value}> {text}");
        prop_assert_eq!(kept(&credentials(&[value]), &echo, Ending::Whole), format!("{text} <\n> {text}"));
    }

    #[test]
    fn nothing_makes_hiding_panic(text in vec(any::<u8>(), 0..300), values in vec(vec(any::<u8>(), 0..9), 0..4)) {
        let mut credentials = Credentials::default();
        values.iter().for_each(|value| credentials.add(value));
        let _ = credentials.hide(&text, Ending::Cut);
        let _ = credentials.hide(&text, Ending::Whole);
    }
}
