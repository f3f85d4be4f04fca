//! Checks that the subscriptions exist where the functions read them, and are valid.

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::subscription::catalogue::Catalogue;
use dialects::{Finding, Severity};

use super::item::Item;
use crate::operations::lints::with_lints;
use crate::operations::shell;
use crate::operations::stack::Stack;
use crate::operations::topics::{self, Wanted};
use crate::terminal::advice::chain;
use crate::terminal::advice::is_denied;
use crate::terminal::text;

const ITEM: &str = "subscriptions";

/// Reads the subscriptions of the stack. Returns the valid ones, if they can be read, and the items
/// about them.
pub(super) async fn examine(stack: &Stack) -> anyhow::Result<(Option<Catalogue>, Vec<Item>)> {
    let Ok(location) = stack.subscriptions() else { return Ok((None, Vec::new())) };
    let deployed = match topics::read(&location, Wanted::All).await {
        Ok(deployed) => deployed,
        Err(why) => {
            let apply = ["lastmile", "apply", "-f", "FILE", "--stack", &stack.name];
            let help = format!("to write the subscriptions: {}", shell::command(&apply));
            let item = match is_denied(&why) {
                true => Item::not_checked(ITEM, &why),
                false => Item::error(ITEM, chain(&why), help),
            };
            return Ok((None, vec![item]));
        }
    };
    let source = std::iter::once(deployed.source.as_str());
    let findings = with_lints(&deployed.reading, source, Machine.now_ms(), Some(stack))?;
    let item = judge(
        &deployed.source,
        deployed.reading.catalogue.subscriptions().count(),
        &findings,
        &stack.name,
    );
    Ok((Some(deployed.reading.catalogue), vec![item]))
}

fn judge(source: &str, count: usize, findings: &[Finding], stack: &str) -> Item {
    let number =
        |severity| findings.iter().filter(|finding| finding.severity == severity).count() as u64;
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let help = shell::command(&["lastmile", "check", "--stack", stack]);
    let count = text::counted(count as u64, "subscription");
    let message = format!("{source} has {count}");
    match (errors, warnings) {
        (0, 0) => Item::ok(ITEM, message),
        (0, warnings) => {
            Item::warning(ITEM, format!("{message}, {}", text::counted(warnings, "warning")), help)
        }
        (errors, _) => {
            Item::error(ITEM, format!("{message}, {}", text::counted(errors, "error")), help)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;
    use crate::operations::writable::Problem;

    #[test]
    fn an_error_in_a_file_is_one_here_and_a_warning_is_a_warning() {
        let warning = || Problem::warning("w".to_owned()).in_file("f".to_owned(), "");
        let error = || Problem::refused("e".to_owned(), "h".to_owned()).in_file("f".to_owned(), "");
        for (findings, state) in [
            (vec![], State::Ok),
            (vec![warning()], State::Warning),
            (vec![warning(), error()], State::Error),
        ] {
            assert_eq!(judge("s3://a/b", 2, &findings, "live").state, state);
        }
        let line = judge("s3://a/b", 2, &[warning()], "live").line();
        let expected = "warning  subscriptions: s3://a/b has 2 subscriptions, 1 warning; lastmile check --stack live\n";
        assert_eq!(line, expected);
    }
}
