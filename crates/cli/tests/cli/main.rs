//! The command line as a person uses it: the binary run as a process, its output, its files, its
//! exit codes, and the page of dead letters over HTTP and in a browser.

mod catalogues;
mod check_stack;
mod command_line;
mod cost;
mod deadletters;
mod deadletters_browser;
mod deadletters_many;
mod deadletters_page;
mod deadletters_replay;
mod destinations;
mod destinations_changes;
mod dialects;
mod documented_commands;
mod environment;
mod hidden_characters;
mod local_servers;
mod page_server;
mod programs;
mod sample_destinations;
mod sample_letters;
mod subscription_files;
mod validate;
