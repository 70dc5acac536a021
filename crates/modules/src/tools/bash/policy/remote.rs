//! Programs that talk to other machines: `curl` and `wget`.

use super::Risk;
use super::code;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

/// Options that send something.
const DATA: &[&str] =
    &["--data", "--json", "--request", "--form", "--post-", "--body-", "--method", "--url-query"];

/// Whether everything that is asked is this machine.
fn is_local(words: &[String]) -> bool {
    let (mut asked, mut value) = (0_usize, false);
    for word in words {
        if std::mem::take(&mut value) {
            continue;
        }
        if word.starts_with('-') {
            // A way around what the address says.
            if [
                "--resolve",
                "--connect-to",
                "-x",
                "--proxy",
                "--preproxy",
                "--socks",
                "--url",
                "--next",
                "-:",
            ]
            .iter()
            .any(|start| word.starts_with(start))
            {
                return false;
            }
            value = matches!(
                word.as_str(),
                "-d" | "-X" | "-F" | "-H" | "-o" | "-w" | "-u" | "-A" | "-b" | "-c" | "-m" | "-O"
            ) || (word.starts_with("--")
                && !word.contains('=')
                && (DATA.iter().any(|start| word.starts_with(start)) || word == "--header"));
            continue;
        }
        let address = word.split_once("://").map_or(word.as_str(), |(_, rest)| rest);
        let host = address.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        let name =
            if host.starts_with('[') { host.split_inclusive(']').next() } else { host.split(':').next() };
        if !matches!(name, Some("localhost" | "127.0.0.1" | "[::1]")) {
            return false;
        }
        asked += 1;
    }
    asked > 0
}

/// Files of settings may say anything, and some options run a program.
fn hides(program: &str, word: &str) -> bool {
    let options: &[&str] = match program {
        "curl" => &["-K", "--config", "--engine"],
        _ => &["-e", "--execute", "--use-askpass", "-i", "--input-file", "--config"],
    };
    options.iter().any(|start| word.starts_with(start))
}

impl Walk<'_> {
    pub(super) fn download(&mut self, program: &str, words: &[String], arguments: &[Word], shown: &str) {
        let local = is_local(words);
        let data = |word: &String| {
            let short = program == "curl" && ["-d", "-F", "-X"].iter().any(|start| word.starts_with(start));
            short || DATA.iter().any(|start| word.starts_with(start))
        };
        let file =
            |word: &String| word.starts_with('@') || word.contains("=@") || word.starts_with("--post-file");
        let raw = |word: &String| {
            word.split_once("://").is_some_and(|(scheme, _)| {
                !["http", "https", "file"].contains(&scheme.to_lowercase().as_str())
            })
        };
        if words.iter().any(|word| {
            raw(word) || word.starts_with("-T") || word.starts_with("--upload-file") || file(word)
        }) {
            self.found.push((Risk::Send, shown.to_owned()));
        } else if words.iter().any(data) && !local {
            self.found.push((Risk::Share, shown.to_owned()));
        }
        if words.iter().any(|word| hides(program, word)) {
            self.found.push((Risk::Opaque, shown.to_owned()));
        }
        self.outside(arguments, shown);
        let mut names = words.iter().zip(words.iter().skip(1));
        let flag = if program == "curl" { ["-o", "--output"] } else { ["-O", "--output-document"] };
        let to = names.find(|(name, _)| flag.contains(&name.as_str())).map(|(_, to)| to.clone());
        let last = words.iter().rfind(|word| word.contains("://") || word.contains('.'));
        let of_url = || last.and_then(|url| url.rsplit('/').next()).map(str::to_owned);
        let saves = program == "wget"
            || words.iter().any(|word| word == "-O" || word == "--remote-name" || word == "-LO");
        if let Some(to) = &to {
            self.all_written(&[Word::text(to.clone())], shown);
        }
        let name = to.or_else(|| if saves { of_url() } else { None });
        self.fetched.extend(name.and_then(|name| name.rsplit('/').next().map(str::to_owned)));
        if arguments.iter().any(|word| code::risk_of(word) == Risk::HiddenCode) {
            self.found.push((Risk::Send, shown.to_owned()));
        }
    }
}
