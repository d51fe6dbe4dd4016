package main

import (
	"embed"
	"slices"
	"strconv"
	"strings"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

//go:embed topics
var topicTexts embed.FS

// topicText returns the text of a topic that has a file.
func topicText(name string) string {
	text, err := topicTexts.ReadFile("topics/" + name + ".md")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// topics returns the topics of the help, which the man pages and docs/reference/reference.md have, too.
func topics() []cmdline.Topic {
	all := []cmdline.Topic{
		{Name: "names", Title: "Names of objects", Short: "Which object a file becomes"},
		{Name: "sources", Title: "Sources", Short: "What can be uploaded: directories, links, devices; and what stops a run"},
		{Name: "patterns", Title: "Patterns", Short: "The patterns of --include and --exclude"},
		{Name: "sizes", Title: "Sizes, ages and times", Short: "The values of --max-size, --min-age, --limit-rate and others"},
		{Name: "streams", Title: "Streams", Short: "Standard input, and streams that survive a crash (--spool)"},
		{Name: "settings", Title: "Settings of objects", Short: "Content type, metadata, access, encryption, and preconditions"},
		{Name: "compression", Title: "Compression", Short: "--gzip: compress files while they are sent"},
		{Name: "removing", Title: "Removing sources", Short: "--remove-source: when a file is removed, and when it stays"},
		{Name: "deletions", Title: "Deletions", Short: "sync --delete: which objects are deleted, and which are kept"},
		{Name: "manifests", Title: "Manifests", Short: "What --manifest records, and how verify and cp compare it with the bucket"},
		{Name: "moving", Title: "Moving uploads", Short: "Resume after the file was moved, or on another machine"},
		{Name: "outboxes", Title: "Outboxes", Short: "When outbox run uploads a file, and when it removes it"},
		{Name: "retries", Title: "Retries and rates", Short: "How long requests are repeated, and how many are made"},
		{Name: "progress", Title: "Progress, logs and reports", Short: "What is shown while a command runs, and written to --log-file and --report"},
		{Name: "config-file", Title: "Configuration file", Short: "Defaults of flags in a file"},
		{Name: "json", Title: "JSON Lines", Short: "The lines of --json"},
	}
	for i := range all {
		all[i].Text = topicText(all[i].Name)
	}
	return append(all,
		cmdline.Topic{
			Name: "errors", Title: "Kinds of errors", Short: "The kinds of errors, with their exit codes",
			Text:    `The telemetry of upload/otel and gcsup-fleet use the same kinds, except ` + "`configuration`" + ` and ` + "`differs`" + `, which only the command uses.`,
			Entries: errorKinds(),
		},
		cmdline.Topic{
			Name: "exit-codes", Title: "Exit status", Short: "The exit codes", Section: true,
			Text:    `A script that only needs to know whether to run the command again checks for 75. With --json, the error of a result has a kind, which is listed after its code.`,
			Entries: exitCodes(),
		},
		cmdline.Topic{
			Name: "environment", Title: "Environment", Short: "The environment variables", Section: true,
			Text:    topicText("environment"),
			Entries: variables,
		},
		cmdline.Topic{
			Name: "files", Title: "Files", Short: "The files that the commands read and write", Section: true,
			Text:    `These are the paths on Linux. On macOS the state directory is in ~/Library/Application Support, on Windows in %LocalAppData%.`,
			Entries: files,
		},
	)
}

// errorKinds returns the kinds of errors with their exit codes, in the order of the codes.
func errorKinds() (entries []cmdline.Entry) {
	for _, k := range exit.Kinds {
		entries = append(entries, cmdline.Entry{Term: k.Name, Text: strconv.Itoa(k.Code) + ": " + k.Text})
	}
	return entries
}

// exitCodes returns the exit codes, with the kinds of errors that have them.
func exitCodes() (entries []cmdline.Entry) {
	for _, m := range exit.Meanings {
		var kinds []string
		for _, k := range exit.Kinds {
			if k.Code == m.Code {
				kinds = append(kinds, k.Name)
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

// variables are the environment variables.
var variables = []cmdline.Entry{
	{Term: "GCSUP_…", Text: "the value of the flag whose name follows"},
	{Term: "GCSUP_ADDITIONAL_HEADERS", Text: "the value of --additional-headers, for a secret header: other users of the machine can read the command line"},
	{Term: process.StateDirEnv, Text: "the state directory (default: gcsup in $XDG_STATE_HOME or ~/.local/state)"},
	{Term: encryptionKeyEnv, Text: "the base64 of the customer-supplied key, without --encryption-key-file"},
	{Term: "STORAGE_EMULATOR_HOST", Text: "send to this host without credentials, as the official libraries do; no effect with --endpoint or --emulator"},
	{Term: "GOOGLE_APPLICATION_CREDENTIALS", Text: "a file with credentials (default: those of gcloud auth application-default login, else the machine's service account)"},
	{Term: "GOOGLE_CLOUD_QUOTA_PROJECT, GOOGLE_CLOUD_UNIVERSE_DOMAIN", Text: "as for the official libraries"},
	{Term: "GOOGLE_API_CERTIFICATE_CONFIG", Text: "the file that describes a client certificate (default: ~/.config/gcloud/certificate_config.json)"},
	{Term: "GOOGLE_API_USE_CLIENT_CERTIFICATE", Text: "true: use the certificate, and send to https://storage.mtls.googleapis.com unless another endpoint is given; false: use none (default: show it if the server asks for one)"},
	{Term: "GOOGLE_API_USE_MTLS_ENDPOINT", Text: "always or never: select https://storage.mtls.googleapis.com, or not, whatever the certificate is"},
	{Term: "GOOGLE_CLOUD_PROJECT, CLOUDSDK_CORE_PROJECT", Text: "the project whose buckets the shell completes (default: that of the credentials, else that of gcloud)"},
	{Term: "HTTPS_PROXY, HTTP_PROXY, NO_PROXY", Text: "proxies"},
	{Term: "SSL_CERT_FILE", Text: "the certificate authorities to trust, instead of the system's; not on macOS and Windows"},
	{Term: "TERM", Text: "dumb: no lines that change"},
	{Term: "NO_COLOR", Text: "if it is set and not empty, output has no colors"},
}

// files are the files that the commands read and write without a flag.
var files = []cmdline.Entry{
	{Term: "~/.local/state/gcsup/uploads", Text: "saved uploads, which contain session URIs: only their owner can read them. --state-dir and --state select another place"},
	{Term: "~/.config/gcsup/config.yaml", Text: "defaults of flags, unless --config names another file: see gcsup help config-file"},
	{Term: "~/.local/state/gcsup/requestrate", Text: "the rates of requests that buckets accepted, for an hour after their last 429"},
	{Term: "~/.local/state/gcsup/emulator", Text: "buckets and objects of --emulator"},
	{Term: "~/.config/gcloud/application_default_credentials.json", Text: "credentials, if neither --credentials-file nor GOOGLE_APPLICATION_CREDENTIALS names a file"},
	{Term: "~/.config/gcloud/certificate_config.json", Text: "the client certificate, unless GOOGLE_API_CERTIFICATE_CONFIG names another file"},
}
