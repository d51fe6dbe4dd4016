package main

import (
	"slices"
	"strconv"
	"strings"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// topics returns the topics of the help, which are also sections of the man pages.
func topics() []cmdline.Topic {
	return []cmdline.Topic{
		{
			Name: "exit-codes", Title: "EXIT STATUS", Short: "The exit codes, and the kinds of errors",
			Text:    `A script that only needs to know whether to run the command again checks for 75. With --json, the error of a result has a kind, which is listed after its code.`,
			Entries: exitCodes(),
		},
		{
			Name: "environment", Title: "ENVIRONMENT", Short: "The environment variables",
			Text:    `A flag of the command line has priority over its variable, and the variable over the configuration file.`,
			Entries: variables,
		},
		{
			Name: "config-file", Title: "CONFIGURATION FILE", Short: "Defaults of flags in a file",
			Text:    `The file that --config or GCSUP_CONFIG names, else ~/.config/gcsup/config.yaml, has the defaults of flags, in YAML. Each key is a flag without its dashes, or a command with a section of flags.`,
			Entries: configEntries,
		},
		{
			Name: "files", Title: "FILES", Short: "The files that the commands read and write",
			Text:    `These are the paths on Linux. On macOS the state directory is in ~/Library/Application Support, on Windows in %LocalAppData%.`,
			Entries: files,
		},
	}
}

// exitCodes returns the exit codes, with the kinds of errors that have them.
func exitCodes() (entries []cmdline.Entry) {
	for _, m := range exit.Meanings {
		var kinds []string
		for kind, code := range exit.Codes {
			if code == m.Code {
				kinds = append(kinds, kind)
			}
		}
		slices.Sort(kinds)
		text := m.Text
		if len(kinds) > 0 {
			text += " (" + strings.Join(kinds, ", ") + ")"
		}
		entries = append(entries, cmdline.Entry{Term: strconv.Itoa(m.Code), Text: text})
	}
	return entries
}

// variables are the environment variables. docs/cli.md lists them in the same order.
var variables = []cmdline.Entry{
	{Term: "GCSUP_…", Text: "the value of any flag whose name follows, in capitals and with _ for -: GCSUP_LIMIT_RATE=20MiB is --limit-rate 20MiB, and GCSUP_QUIET=true is --quiet. An empty variable counts as unset"},
	{Term: "GCSUP_ADDITIONAL_HEADERS", Text: "the value of --additional-headers, for a secret header: other users of the machine can read the command line"},
	{Term: process.StateDirEnv, Text: "the state directory (default: gcsup in $XDG_STATE_HOME or ~/.local/state)"},
	{Term: encryptionKeyEnv, Text: "the base64 of the customer-supplied key, without --encryption-key-file"},
	{Term: "STORAGE_EMULATOR_HOST", Text: "send to this host without credentials; no effect with --endpoint or --emulator"},
	{Term: "GOOGLE_APPLICATION_CREDENTIALS", Text: "a file with credentials (default: those of gcloud auth application-default login, else the machine's service account)"},
	{Term: "GOOGLE_CLOUD_QUOTA_PROJECT, GOOGLE_CLOUD_UNIVERSE_DOMAIN", Text: "as for the official libraries"},
	{Term: "GOOGLE_API_CERTIFICATE_CONFIG, GOOGLE_API_USE_CLIENT_CERTIFICATE, GOOGLE_API_USE_MTLS_ENDPOINT", Text: "the client certificate, and whether to use it, as for the official libraries"},
	{Term: "GOOGLE_CLOUD_PROJECT, CLOUDSDK_CORE_PROJECT", Text: "the project whose buckets the shell completes (default: that of the credentials, else that of gcloud)"},
	{Term: "HTTPS_PROXY, HTTP_PROXY, NO_PROXY", Text: "proxies"},
	{Term: "SSL_CERT_FILE", Text: "the certificate authorities to trust, instead of the system's; not on macOS and Windows"},
	{Term: "TERM", Text: "dumb: no lines that change"},
	{Term: "NO_COLOR", Text: "if it is set and not empty, output has no colors"},
	{Term: "XTERM_VERSION, STY", Text: "set by xterm and GNU screen, which cut long lines when the window gets narrower"},
}

// configEntries are the forms of the lines in a configuration file.
var configEntries = []cmdline.Entry{
	{Term: "FLAG: VALUE", Text: "for all commands that have the flag, such as limit-rate: 20MiB"},
	{Term: "FLAG: [VALUE, VALUE]", Text: "for a flag that can be repeated, such as exclude: ['*.tmp', .git/]"},
	{Term: "FLAG: true", Text: "for a flag without a value. false leaves it out"},
	{Term: "COMMAND:", Text: "begins a section of indented lines for one command, such as outbox run: they have priority over those for all commands"},
}

// files are the files that the commands read and write without a flag.
var files = []cmdline.Entry{
	{Term: "~/.local/state/gcsup/sessions", Text: "saved uploads, which contain session URIs: only their owner can read them. --state-dir and --state select another place"},
	{Term: "~/.config/gcsup/config.yaml", Text: "defaults of flags, unless --config names another file: see gcsup help config-file"},
	{Term: "~/.local/state/gcsup/requestrate", Text: "the rates of requests that buckets accepted, for an hour after their last 429"},
	{Term: "~/.local/state/gcsup/emulator", Text: "buckets and objects of --emulator"},
	{Term: "~/.config/gcloud/application_default_credentials.json", Text: "credentials, if neither --credentials-file nor GOOGLE_APPLICATION_CREDENTIALS names a file"},
	{Term: "~/.config/gcloud/certificate_config.json", Text: "the client certificate, unless GOOGLE_API_CERTIFICATE_CONFIG names another file"},
}
