//! Programs that talk to other machines: `curl` and `wget`.

use super::Risk;
use super::code;
use super::walk::Walk;
use crate::tools::bash::shell::Word;

impl Walk<'_> {
    pub(super) fn download(&mut self, program: &str, words: &[String], arguments: &[Word], shown: &str) {
        let local = words
            .iter()
            .any(|word| ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| word.contains(host)));
        let data = |word: &String| {
            matches!(
                word.as_str(),
                "-d" | "--data"
                    | "--data-raw"
                    | "--data-binary"
                    | "--json"
                    | "-X"
                    | "--request"
                    | "--post-data"
                    | "-F"
                    | "--form"
            ) || ["--data", "--form", "--post-", "--body-", "--url-query"]
                .iter()
                .any(|start| word.starts_with(start))
                || (program == "curl" && ["-d", "-F"].iter().any(|start| word.starts_with(start)))
        };
        let file =
            |word: &String| word.starts_with('@') || word.contains("=@") || word.starts_with("--post-file");
        if words.iter().any(|word| word.starts_with("-T") || word.starts_with("--upload-file") || file(word))
        {
            self.found.push((Risk::Send, shown.to_owned()));
        } else if words.iter().any(data) && !local {
            self.found.push((Risk::Share, shown.to_owned()));
        }
        // Files of settings may say anything, and these run a program.
        let hidden = [
            "-K",
            "--config",
            "--engine",
            "-e",
            "--execute",
            "--use-askpass",
            "-i",
            "--input-file",
            "--proxy-header",
        ];
        let hides = |word: &String| {
            hidden.iter().any(|start| word == start || word.starts_with(&format!("{start}=")))
                || (word.starts_with("-K") && program == "curl")
        };
        let curls = |word: &String| program == "curl" && matches!(word.as_str(), "-i" | "-e");
        if words.iter().any(|word| hides(word) && !curls(word)) {
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
