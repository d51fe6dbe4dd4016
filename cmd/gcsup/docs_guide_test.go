//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// document has what a test needs to run the commands of a document.
type document struct {
	files   []string // that exist, with 20,000,000 bytes each
	left    bool     // an upload of disk.img was interrupted, whose ID replaces the word ID
	objects []string // in my-bucket afterwards
	gone    string   // a file that does not exist afterwards
}

// runPages are the documents whose blocks of sh TestDocumentedCommands runs.
var runPages = map[string]document{
	"docs/start/setup.md": {},
	"docs/how-to/large-file.md": {
		files:   []string{"var/backups/disk-2026-11-29.img", "var/backups/disk.img"},
		objects: []string{"disks/disk-2026-11-29.img"},
	},
	"docs/how-to/directory.md": {
		files:   []string{"srv/photos/2026/1.jpg", "srv/photos/2026/2.jpg", "srv/photos/2026/3.jpg", "srv/photos/2026/4.jpg"},
		objects: []string{"photos/2026/1.jpg", "album/photos/2026/1.jpg", "album/2026/2.jpg", "found/photos/2026/1.jpg"},
	},
	"docs/how-to/command-output.md": {
		files:   []string{"srv/photos/1.jpg"},
		objects: []string{"photos.tar", "photos.tar.gz", "photos-1.tar", "photos-2.tar"},
	},
	"docs/how-to/outbox.md":        {objects: []string{"in/disk.img"}, gone: "out/disk.img"},
	"docs/how-to/many-machines.md": {objects: []string{"data/1.jpg", "data/2.jpg"}},
	"docs/how-to/another-machine.md": {
		files: []string{"disk.img"}, left: true, objects: []string{"left.img", "shared.img"},
	},
	"docs/how-to/kubernetes.md": {},
	"docs/how-to/tests.md":      {files: []string{"disk.img"}},
	"docs/emulator/emulator.md": {},
	"docs/explain/parallel.md": {
		files: []string{"disk.img"}, left: true, objects: []string{"disk.img", "left.img"},
	},
	"docs/reference/permissions.md":       {},
	"docs/how-to/go-program.md":           {},
	"docs/library/from-storage-writer.md": {},
	"docs/maintain/release.md":            {},
	"CONTRIBUTING.md":                     {},
	"fleet/README.md":                     {},
}

// notRun are the beginnings of the blocks that TestDocumentedCommands does not run, with the reason.
var notRun = map[string]string{
	"CGO_ENABLED=0 go build":                       "builds; make build does the same",
	"sudo gcsup outbox run /srv/drop":              "runs until it is stopped; the first block of the page runs an outbox",
	"./fakegcs --create-buckets\n":                 "runs until it is stopped; the test has a server",
	"go run ./cmd/gcsup emulator --create-buckets": "runs until it is stopped; the test has a server",
	"go run ./cmd/gcsup emulator check-client":     "upload.sh is the reader's; check-client.txtar runs check-client",
	"rclone copy":                 "needs rclone and gcloud; make compat runs them",
	"go mod edit":                 "names a clone; TestGuidePrograms builds the programs of the page",
	"go mod tidy":                 "needs a module; TestGuidePrograms runs the programs of the page",
	"go get gcsup":                "nothing is published",
	"(cd upload/closecheck":       "installs; the module upload/closecheck has tests",
	"go vet -vettool":             "needs the installed program; the module upload/closecheck has tests",
	"make publish-as":             "changes the tree; a test of internal/dist publishes a copy",
	"make build ":                 "CI runs these targets",
	"go run ./cmd/gcsup-fleet":    "runs until it is stopped; TestReadme of fleet/internal/fire runs it",
	"deploy/certs.sh certs":       "needs a cluster; the module fleet/deploy checks the files",
	"(umask 077; openssl genpkey": "needs openssl; the module fleet has tests of the keys",
}

// stubs replace programs that need another machine, an account or root. gcloud copies objects, and makes a key.
var stubs = map[string]string{
	"sudo":      `exec "$@"`,
	"systemctl": "",
	// As root, install sets the owner.
	"install": `for arg; do
	shift
	case $arg in
	-o | -g) skip=1 ;;
	*) test -n "$skip" || set -- "$@" "$arg"; skip= ;;
	esac
done
exec /usr/bin/install "$@"`,
	"docker":  "",
	"kubectl": "",
	"ssh":     "shift\nexport GCSUP_STATE_DIR=$HOME/other\nexec \"$@\"",
	"timeout": "shift 4\n\"$@\" &\nwhile [ -e out/disk.img ]; do sleep 0.1; done\nkill -INT $!\nwait $!",
	"gcloud": `case "$1 $2 $3" in
"storage cp "*) exec curl -sf -o "$4" "$STORAGE_EMULATOR_HOST/${3#gs://}" ;;
"storage objects list") echo 1 ;;
"iam service-accounts keys") touch "$5" ;;
esac`,
}

// TestDocumentedCommands runs each block of sh in the documents, as it stands and in the order of the page, or
// notRun says why not. It runs the command of each line of a crontab, too. TestReadme does it for README.md. Each page has a home directory, in which the directories
// /etc, /srv, /usr/local/bin and /var are, and a server.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	unused := map[string]bool{}
	for block := range notRun {
		unused[block] = true
	}
	for name, text := range documents(t) {
		if filepath.Ext(name) != ".md" || name == "../../README.md" {
			continue
		}
		name = strings.TrimPrefix(name, "../../")
		var run []string
		found := regexp.MustCompile("(?ms)^ *```(sh|crontab)\n(.*?)^ *```").FindAllStringSubmatch(text, -1)
		for _, m := range found {
			i := slices.IndexFunc(keys(notRun), func(block string) bool { return strings.HasPrefix(m[2], block) })
			if m[1] == "crontab" {
				m[2] = strings.ReplaceAll(regexp.MustCompile(`(?m)^(@\w+|(\S+ ){4}\S+) `).ReplaceAllString(m[2], ""), `\%`, "%")
			}
			if i < 0 {
				run = append(run, m[2])
			} else {
				delete(unused, keys(notRun)[i])
			}
		}
		p, ok := runPages[name]
		if ok != (len(found) > 0) {
			t.Errorf("%s has %d blocks of sh, and in runPages is %v", name, len(found), ok)
		}
		if len(run) > 0 {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runPage(t, p, run)
			})
		}
	}
	for block := range unused {
		t.Errorf("no document has the block %q of notRun", block)
	}
}

// keys returns the keys of m, sorted.
func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// runPage runs the blocks of a page.
func runPage(t *testing.T, p document, blocks []string) {
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	home := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(home, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), mode)))
	}
	for name, script := range stubs {
		write("bin/"+name, "#!/bin/sh\n"+script+"\n", 0o700)
	}
	write("fakegcs", "#!/bin/sh\nexec gcsup emulator \"$@\"\n", 0o700)
	write("usr/local/bin/gcsup", "#!/bin/sh\nexec gcsup \"$@\"\n", 0o700)
	write("srv/x", "", 0o600)
	write("etc/systemd/system/x", "", 0o600)
	write("etc/gcsup/x", "", 0o600)
	write("var/tmp/x", "", 0o600)
	write("var/lib/gcsup/x", "", 0o600)
	clone, err := filepath.Abs("../..")
	if err == nil {
		err = os.Symlink(filepath.Join(clone, "internal"), filepath.Join(home, "internal"))
	}
	require.NoError(t, err)
	for _, name := range p.files {
		write(name, strings.Repeat("0123456789", 2_000_000), 0o600)
	}
	shell := func(script string) string {
		t.Helper()
		script = regexp.MustCompile(`(?m)(^|[\s="])/(etc|srv|usr/local/bin|var)\b`).ReplaceAllString(script, "${1}"+home+"/$2")
		cmd := exec.Command("bash", "-e", "-c", script)
		cmd.Dir = home
		cmd.Env = []string{
			"HOME=" + home, "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH"), "STORAGE_EMULATOR_HOST=" + srv.URL,
			"GORACE=atexit_sleep_ms=20 exitcode=166",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	id := ""
	if p.left {
		unavailable := faults.Action{Effect: faults.EffectStatus, Status: 503}
		require.NoError(t, srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: unavailable}))
		shell("gcsup cp -q --retry-for 1ms disk.img gs://my-bucket/left.img 2>/dev/null || test $? = 75")
		id = strings.Fields(shell("gcsup uploads list | tail -n +2"))[0]
	}
	for _, block := range blocks {
		shell(regexp.MustCompile(`\bID\b`).ReplaceAllString(block, id))
	}
	for _, object := range p.objects {
		if _, ok := srv.Object("my-bucket", object); !ok {
			t.Errorf("there is no object %s", object)
		}
	}
	if p.gone != "" {
		if _, err := os.Stat(filepath.Join(home, p.gone)); err == nil {
			t.Errorf("%s is still there", p.gone)
		}
	}
}
