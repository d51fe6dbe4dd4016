package cmdline

import (
	"slices"

	"github.com/spf13/cobra"
)

// peerFlag is advice about a flag of gcloud, gsutil, rclone or aws that gcsup does not have.
type peerFlag struct {
	names  []string
	needs  []string // the flags of a command for which the advice is right
	advice string
}

// peerFlags is the table of these flags. A name of one letter is a shorthand.
var peerFlags = []peerFlag{
	// Which files.
	{[]string{"ignore-existing", "immutable", "no-overwrite"}, []string{"no-clobber"}, "use --no-clobber"},
	{[]string{"update", "skip-if-dest-has-newer-mtime", "size-only", "exact-timestamps", "use-server-modtime"}, []string{"skip-identical"},
		"use --skip-identical=mtime, which compares size and modification time, or --skip-identical, which compares the content"},
	{[]string{"checksum", "checksums-only"}, []string{"skip-identical"}, "use --skip-identical, which compares size and CRC32C"},
	{[]string{"c"}, []string{"skip-identical"}, "a source that fails does not stop the others, as with -c of gsutil; for -c of rclone use --skip-identical"},
	{[]string{"u"}, []string{"user-project", "skip-identical"}, "for -u of gsutil use --user-project, for -u of rclone --skip-identical=mtime"},
	{[]string{"dryrun"}, []string{"dry-run"}, "use --dry-run"},
	{[]string{"d", "del", "delete-before", "delete-during"}, []string{"delete"}, "use --delete, which deletes objects without a file after all files were uploaded"},
	{[]string{"delete", "delete-unmatched-destination-objects", "delete-excluded", "delete-after", "max-delete"}, []string{"skip-identical"},
		"gcsup sync deletes objects that have no file"},
	{[]string{"r", "R", "recursive"}, []string{"delete"}, "sync takes all files below DIR without it"},
	{[]string{"x"}, []string{"delete", "exclude"}, "use --exclude PATTERN; the patterns are those of rclone"},
	{[]string{"no-follow-symlinks", "skip-links", "e"}, []string{"ignore-symlinks"}, "use --ignore-symlinks"},
	{[]string{"copy-links", "no-ignore-symlinks"}, []string{"follow-symlinks"}, "use --follow-symlinks"},
	{[]string{"links", "l"}, []string{"follow-symlinks"}, "a symbolic link is not stored as one; --follow-symlinks uploads what it leads to"},
	{[]string{"skip-unsupported", "U"}, []string{"strict"}, "links, FIFOs, sockets and devices are skipped without it"},
	{[]string{"filter", "filter-from", "f"}, []string{"include", "exclude"}, "use --include and --exclude; an exclude takes precedence"},
	{[]string{"files-from-raw"}, []string{"files-from"}, "use --files-from"},
	{[]string{"manifest-path"}, []string{"manifest"}, "use --manifest FILE, which also skips finished files in the next run"},
	{[]string{"L"}, []string{"manifest", "follow-symlinks"}, "for -L of gsutil use --manifest, for -L of rclone --follow-symlinks"},
	{[]string{"max-depth"}, []string{"exclude"}, "use --exclude, such as --exclude '/*/*/' for two levels"},
	{[]string{"if-metageneration-match"}, []string{"if-generation-match"}, "use --if-generation-match"},

	// Settings.
	{[]string{"canned-acl", "gcs-object-acl", "a"}, []string{"predefined-acl"}, "use --predefined-acl, such as --predefined-acl publicRead"},
	{[]string{"grants"}, []string{"acl"}, "use --acl ENTITY=ROLE"},
	{[]string{"preserve-acl", "p"}, []string{"predefined-acl"}, "a file has no access control list; use --predefined-acl"},
	{[]string{"gcs-storage-class", "s"}, []string{"storage-class"}, "use --storage-class"},
	{[]string{"gzip-local", "gzip-in-flight", "z", "j"}, []string{"gzip"}, "use --gzip, such as --gzip txt,csv"},
	{[]string{"gzip-local-all", "gzip-in-flight-all", "Z", "J"}, []string{"gzip"}, "use --gzip all"},
	{[]string{"custom-metadata", "update-custom-metadata", "metadata-set"}, []string{"metadata"}, "use --metadata KEY=VALUE"},
	{[]string{"M"}, []string{"preserve-posix"}, "use --preserve-posix"},
	{[]string{"expires"}, []string{"cache-control"}, "use --cache-control, such as --cache-control 'max-age=3600'"},
	{[]string{"no-guess-mime-type"}, []string{"content-type"}, "use --content-type, such as --content-type application/octet-stream"},
	{[]string{"encryption-key", "decryption-keys"}, []string{"encryption-key-file"}, "use --encryption-key-file, because other users can read the command line"},
	{[]string{"sse-kms-key-id", "kms-encryption-key", "default-kms-key"}, []string{"kms-key"}, "use --kms-key"},
	{[]string{"content-md5", "no-check-hashes"}, []string{"content-type"}, "the CRC32C of each object is checked without it"},

	// Where.
	{[]string{"endpoint-url", "gcs-endpoint", "api-endpoint-override"}, []string{"endpoint"}, "use --endpoint"},
	{[]string{"account", "gcs-service-account-file", "access-token-file", "profile"}, []string{"credentials-file", "impersonate-service-account"},
		"use --credentials-file FILE or --impersonate-service-account EMAIL"},
	{[]string{"i"}, []string{"impersonate-service-account"}, "use --impersonate-service-account EMAIL"},
	{[]string{"project", "project-number", "gcs-user-project"}, []string{"billing-project"},
		"use --billing-project for the project that is billed; a bucket needs no project"},
	{[]string{"header", "header-upload"}, []string{"additional-headers"}, "use --additional-headers KEY=VALUE"},

	// How.
	{[]string{"bwlimit", "max-bandwidth"}, []string{"limit-rate"}, "use --limit-rate, such as --limit-rate 20MiB"},
	{[]string{"tpslimit", "tpslimit-burst"}, []string{"request-rate"}, "use --request-rate N"},
	{[]string{"transfers", "checkers", "process-count", "thread-count", "max-concurrent-requests"}, []string{"jobs"},
		"use --jobs N; without it, as many files are processed at a time as raise the throughput"},
	{[]string{"m"}, []string{"jobs"}, "files are uploaded several at a time without it; --jobs N sets the number"},
	{[]string{"multi-thread-streams", "s3-upload-concurrency", "upload-concurrency"}, []string{"parallel"}, "use --parallel N"},
	{[]string{"multi-thread-cutoff", "multi-thread-chunk-size"}, []string{"parallel"}, "use --parallel; the sizes of the parts are chosen"},
	{[]string{"gcs-chunk-size", "s3-chunk-size"}, []string{"chunk-size"}, "use --chunk-size"},
	{[]string{"buffer-size"}, []string{"memory"}, "use --memory, for the buffers of all files together"},

	// Retry.
	{[]string{"retries", "low-level-retries", "max-retries", "max-retry-delay", "retries-sleep"}, []string{"retry-for", "max-wait"},
		"use --retry-for DURATION, such as --retry-for 12h; --max-wait is the longest wait before a retry"},
	{[]string{"timeout", "contimeout", "cli-read-timeout", "cli-connect-timeout"}, []string{"stall-timeout"}, "use --stall-timeout"},
	{[]string{"continue-on-error", "ignore-errors"}, []string{"recursive"}, "a source that fails does not stop the others"},

	// Output.
	{[]string{"no-progress"}, []string{"progress"}, "use --progress off"},
	{[]string{"stats", "stats-one-line", "stats-log-level"}, []string{"progress"}, "use --progress lines"},
	{[]string{"only-show-errors", "no-user-output-enabled"}, []string{"quiet"}, "use --quiet"},
	{[]string{"verbosity", "debug", "log-http", "dump", "D"}, []string{"verbose", "log-file"}, "use --verbose or --log-file FILE"},
	{[]string{"use-json-log", "format", "output"}, []string{"json"}, "use --json"},
}

// peerAdvice returns the advice about a flag of another tool, or "" if there is none for cmd. Before
// a command, the flags of the commands below cmd count.
func peerAdvice(cmd *cobra.Command, name string) string {
	for _, p := range peerFlags {
		if !slices.Contains(p.names, name) {
			continue
		}
		c := cmd
		if cmd.HasSubCommands() {
			c = withFlag(cmd, p.needs[0])
		}
		if c != nil && !slices.ContainsFunc(p.needs, func(flag string) bool { return c.Flags().Lookup(flag) == nil }) {
			return p.advice
		}
	}
	return ""
}

// PeerFlags returns the names in the table for which cmd has advice, for a test of that command.
func PeerFlags(cmd *cobra.Command) (names []string) {
	for _, p := range peerFlags {
		for _, name := range p.names {
			if peerAdvice(cmd, name) != "" {
				names = append(names, name)
			}
		}
	}
	return names
}
