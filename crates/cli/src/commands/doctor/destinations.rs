//! Checks the state of destinations: which are failing, slow or disabled.

use super::item::Item;
use crate::operations::destinations::unhealthy;
use crate::operations::shell;
use crate::operations::stack::Stack;

pub(super) async fn examine(stack: &Stack) -> Item {
    let item = "destinations";
    match unhealthy(stack).await {
        Ok(names) if names.is_empty() => Item::ok(
            item,
            "no destination is failing, slow or disabled; use --try to send a test event",
        ),
        Ok(names) => {
            let help =
                shell::command(&["lastmile", "destinations", "list", "--stack", &stack.name]);
            Item::warning(item, names.join("; "), help)
        }
        Err(why) => Item::not_checked(item, &why),
    }
}
