//! Finds the records that belong to a dead letter: its dismissal, its replay with the outcome, and
//! the earlier dead letter whose replay failed and created this one.

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::cause::{CauseId, cause_id};
use deadletters::dismissed::{Dismissal, NOTE_MAX_CHARS};
use deadletters::ledger::ReplayRecord;
use deadletters::replay::ends::ReplayEndState;
use deadletters::state::{LetterState, LetterStates};
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::replay::ReplayOutcome;
use delivery::ports::Clock as _;
use delivery::time::moment::{self, rfc3339};
use maud::{Markup, html};
use uuid::Uuid;

use super::letter::find;
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::shell::error::PageError;
use crate::console::shell::markup::{block, line, message};
use crate::console::shell::query::{pairs, value};
use crate::operations::this_machine::user;
use crate::terminal::text;
use crate::views::replay_end::NO_END;

/// The records of a dead letter's replay and dismissal.
pub(in crate::console) struct LetterLinks {
    replay: Option<ReplayRecord>,
    dismissal: Option<Dismissal>,
    /// The rendered warning from [`still_sent`]; empty if no replay plans to send the dead letter.
    still_sent: Markup,
}

/// Finds the records that belong to a dead letter.
pub(in crate::console) fn find_links(
    letter: &StoredDeadLetter,
    states: &LetterStates,
) -> LetterLinks {
    let replay = states.replay_of(letter.id).cloned();
    let dismissal = states.dismissal_of(letter.id).cloned();
    LetterLinks { replay, dismissal, still_sent: still_sent([letter.id], states) }
}

impl LetterLinks {
    /// Renders the list of related records; empty if there are none.
    pub(super) fn facts(&self, letter: &StoredDeadLetter) -> Markup {
        html! {
            @if self.has_facts(letter) { section .panel aria-label="Related items" { dl .facts {
                @if let Some(end) = self.end() { div { dt { "Replay" } dd { (end) } } }
                @if let Some(replay) = &letter.replay { div { dt { "Replay of" } dd .mono {
                    a href={ "/letters/" (replay.letter) } { (replay.letter) }
                    " by " a href={ "/jobs/" (replay.job()) } { (line(replay.job())) }
                } } }
                @if let Some(Dismissal { at, by, note, .. }) = &self.dismissal {
                    div { dt { "Dismissed" } dd {
                        (line(&text::seconds(at)))
                        @if let Some(by) = by { " by " (line(by)) }
                        ": " (block(note))
                    } }
                }
            } } }
        }
    }

    /// Renders the outcome of the replay; `None` without a replay, or if outcomes are not recorded.
    fn end(&self) -> Option<Markup> {
        let record = self.replay.as_ref()?;
        Some(match record.end_state_now() {
            ReplayEndState::NotRecorded => return None,
            ReplayEndState::UnderWay => html! { "under way" },
            ReplayEndState::Unknown => html! { "unknown: " (message(NO_END)) },
            ReplayEndState::Ended(end) => html! {
                (end.state) " " (line(&text::seconds(&end.at)))
                // If a replay fails, the new dead letter has the id of the replay's delivery.
                @if end.state == ReplayOutcome::DeadAgain {
                    " → " a .mono href={ "/letters/" (record.entry.delivery) } { (record.entry.delivery) }
                }
            },
        })
    }

    fn has_facts(&self, letter: &StoredDeadLetter) -> bool {
        letter.replay.is_some() || self.end().is_some() || self.dismissal.is_some()
    }

    /// Renders the form that dismisses the dead letter, or undoes its dismissal.
    pub(super) fn form(&self, console: &Console, letter: &StoredDeadLetter) -> Markup {
        let action = |verb: &str| format!("/letters/{}/{verb}", letter.id);
        html! {
            @if self.dismissal.is_some() {
                form .buttons action=(action("undismiss")) method="post" {
                    (console.token.field())
                    (console.access.submit(Action::Dismiss, false, &html! { "Undo the dismissal" }))
                }
            } @else {
                (self.still_sent)
                (dismiss_form(console, &action("dismiss"), &[], &html! { "Dismiss" }))
            }
        }
    }
}

/// Renders a warning about open dead letters that a replay plans to send. A running replay does not
/// notice later dismissals.
pub(super) fn still_sent(letters: impl IntoIterator<Item = Uuid>, states: &LetterStates) -> Markup {
    let is_planned = |letter: &Uuid| {
        states.state(*letter) == LetterState::Open && states.planned_by(*letter).is_some()
    };
    let count = letters.into_iter().filter(is_planned).count() as u64;
    html! { @if count > 0 {
        p .notice {
            "An unfinished replay includes " (text::dead_letters(count)) ". It sends them even if you dismiss them. "
            a href="/jobs" { "Show all replays" }
        }
    } }
}

/// Renders the form that dismisses dead letters. The form requires a note.
pub(in crate::console) fn dismiss_form(
    console: &Console,
    action: &str,
    hidden: &[(&str, String)],
    text: &Markup,
) -> Markup {
    html! { form .buttons.dismiss action=(action) method="post" {
        (console.token.field())
        @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
        label .inline { "No action is needed, because " input name="note" required maxlength=(NOTE_MAX_CHARS) autocomplete="off"; }
        (console.access.submit(Action::Dismiss, false, text))
    } }
}

/// Stores a dismissal, and marks the caches as stale so that the next page shows the new states.
pub(super) async fn record(
    console: &Console,
    letters: Vec<Uuid>,
    causes: impl IntoIterator<Item = CauseId>,
    form: &[u8],
    back: &str,
) -> Result<Response, PageError> {
    let pairs = pairs(form);
    let note = value(&pairs, "note").unwrap_or_default();
    let dismissal = Dismissal::new(letters, causes, rfc3339(Machine.now_ms()), user(), note);
    let dismissal = dismissal.map_err(|why| {
        PageError::new(StatusCode::BAD_REQUEST, "Not dismissed", why)
            .with_link(back.to_owned(), "Back")
    })?;
    console.letters.dismiss(&dismissal).await.map_err(PageError::not_recorded)?;
    console.caches.expire();
    Ok(Redirect::to(back).into_response())
}

pub(in crate::console) async fn dismiss(
    extract::State(console): extract::State<SharedConsole>,
    Path(id): Path<String>,
    form: Bytes,
) -> Result<Response, PageError> {
    let letter = find(&console, &id).await?;
    let back = format!("/letters/{}", letter.id);
    record(&console, vec![letter.id], [cause_id(&letter)], &form, &back).await
}

/// Handles the form that withdraws the dismissal of a dead letter.
pub(in crate::console) async fn undismiss(
    extract::State(console): extract::State<SharedConsole>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let letter = find(&console, &id).await?;
    let states = console.letters.states().await.map_err(PageError::storage)?;
    // The withdrawal must be later than the dismissal. The dismissal may come from a machine whose
    // clock is ahead.
    let dismissed_ms =
        states.dismissal_of(letter.id).and_then(|dismissal| moment::parse(&dismissal.at));
    let at_ms = Machine.now_ms().max(dismissed_ms.unwrap_or_default() + 1);
    let taken_back = Dismissal::taken_back(vec![letter.id], rfc3339(at_ms), user());
    console.letters.dismiss(&taken_back).await.map_err(PageError::not_recorded)?;
    console.caches.expire();
    Ok(Redirect::to(&format!("/letters/{}", letter.id)).into_response())
}
