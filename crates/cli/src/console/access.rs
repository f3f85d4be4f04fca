//! Shows which actions the credentials of this console allow.
//!
//! The console tests the actions once, when it starts. The button of a denied action is disabled
//! and shows the reason. If the test is inconclusive, the button is enabled, and AWS refuses the
//! request.

use maud::{Markup, html};

use super::shell::markup::line;
pub(super) use crate::operations::access::{Access, Action};

impl Access {
    /// Renders a button that submits its form. If the action is denied, the button is disabled and
    /// shows the reason.
    pub(super) fn submit(&self, action: Action, is_primary: bool, text: &Markup) -> Markup {
        match self.denied(action) {
            None => html! { button .primary[is_primary] type="submit" { (text) } },
            Some(why) => html! { button type="submit" disabled { (text) } (reason(why)) },
        }
    }

    /// Renders a link that looks like a button. If the action is denied, renders its text and the
    /// reason instead.
    pub(super) fn link(
        &self,
        action: Action,
        is_primary: bool,
        href: &str,
        text: &Markup,
    ) -> Markup {
        match self.denied(action) {
            None => html! { a .button.primary[is_primary] href=(href) { (text) } },
            Some(why) => html! { span .denied { span .button.off { (text) } (reason(why)) } },
        }
    }
}

fn reason(why: &str) -> Markup {
    html! { span .hint { " " (line(why)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_action_has_a_disabled_button_and_its_reason() {
        let access = Access::new(Some("sqs:SendMessage is denied".to_owned()), None);
        let send = html! { "Send" };
        let shown = access.submit(Action::Replay, true, &send).into_string();
        assert!(
            shown.contains("disabled") && shown.contains("sqs:SendMessage is denied"),
            "{shown}"
        );
        let link = access.link(Action::Replay, true, "/replay", &send).into_string();
        assert!(!link.contains("href") && link.contains("sqs:SendMessage"), "{link}");
        let allowed = access.submit(Action::Dismiss, false, &send).into_string();
        assert!(!allowed.contains("disabled"), "{allowed}");
    }
}
