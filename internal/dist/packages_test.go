package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// required returns the path of a tool that .ci/run installs. Without it the test fails in CI, and is
// skipped elsewhere.
func required(t *testing.T, tool, debian string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	switch {
	case err == nil:
		return path
	case os.Getenv("GCSUP_TEST_PACKAGES") != "":
		t.Fatalf("%s is not installed, and could not be: install it (Debian: apt-get install %s)", tool, debian)
	}
	t.Skipf("%s is not installed (Debian: apt-get install %s)", tool, debian)
	return ""
}

// command runs a command and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "LC_ALL=C.UTF-8", "TZ=UTC")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPackages installs a package in a root directory of its own, runs the program there, edits the
// configuration, upgrades and removes it, with dpkg and with rpm.
func TestPackages(t *testing.T) {
	if os.Getenv("GCSUP_TEST_PACKAGES") == "" {
		t.Skip("builds gcsup and its packages: set GCSUP_TEST_PACKAGES=1")
	}
	if os.Getuid() != 0 {
		t.Fatal("dpkg and rpm change the root directory: run this test as root")
	}
	required(t, "dpkg", "dpkg")
	required(t, "rpm", "rpm")
	t.Chdir("../..")
	out := t.TempDir()
	license := filepath.Join(out, licensesName)
	require.NoError(t, os.WriteFile(license, []byte("the licenses\n"), 0o666))
	p := packager{pages: out, time: time.Unix(1_700_000_000, 0).UTC(), maintainer: "The Testers <testers@users.noreply.github.com>"}
	require.NoError(t, p.writePages())
	var packages [2]map[string][]byte // by format
	for i, version := range []string{"v1.0.0-rc.1", "v1.0.0-2-gabcdef0"} {
		binary := filepath.Join(out, "gcsup-"+version)
		command(t, ".", "go", "build", "-ldflags=-s -w -X main.stampedVersion="+version, "-o", binary, "./cmd/gcsup")
		packages[i] = written(t, p, version, binary)
	}
	checkReproducible(t, p)
	checkBill(t, filepath.Join(out, "gcsup-v1.0.0-rc.1"))
	for format, manager := range map[string]packageManager{"deb": newDpkg(t), "rpm": newRPM(t)} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			var files []string
			for i, list := range packages {
				files = append(files, filepath.Join(dir, fmt.Sprint(i, ".", format)))
				require.NoError(t, os.WriteFile(files[i], list[format], 0o666))
			}
			checkLifeCycle(t, manager, files[0], files[1])
			if format == "deb" {
				checkLintian(t, files[1])
			}
		})
	}
}

// checkBill checks that the bill of materials of a binary has all its modules, and nothing that differs
// between two runs or two machines.
func checkBill(t *testing.T, binary string) {
	t.Helper()
	var bills [2][]byte
	for i := range bills {
		file := filepath.Join(t.TempDir(), "bill")
		err := writeBill(file, binary, "v1.2.3")
		require.NoError(t, err)
		if bills[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bills[0], bills[1]) {
		t.Errorf("two bills of materials of a binary differ:\n%s\n%s", bills[0], bills[1])
	}
	var bill struct {
		SpecVersion string
		Components  []struct{ Name, Version string }
	}
	require.NoError(t, json.Unmarshal(bills[0], &bill))
	if bill.SpecVersion != "1.6" {
		t.Errorf("the bill of materials has version %q of CycloneDX, want 1.6", bill.SpecVersion)
	}
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	want := []string{"std " + info.GoVersion}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bill.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the bill of materials has the modules\n%q, want\n%q", got, want)
	}
	for _, part := range []string{`"timestamp"`, `"serialNumber"`, `"tools"`, filepath.Dir(binary)} {
		if bytes.Contains(bills[0], []byte(part)) {
			t.Errorf("the bill of materials has %s, which cannot be reproduced:\n%s", part, bills[0])
		}
	}
}

// checkLintian checks that lintian, if it is installed, finds no error and no warning.
func checkLintian(t *testing.T, file string) {
	t.Helper()
	lintian, err := exec.LookPath("lintian")
	if err != nil {
		t.Log("lintian is not installed (Debian: apt-get install lintian)")
		return
	}
	command(t, ".", lintian, "--fail-on=error,warning", "--allow-root", file)
}

// checkReproducible writes the same packages twice, with a small file as the program, because
// compression takes time.
func checkReproducible(t *testing.T, p packager) {
	t.Helper()
	license := filepath.Join(p.pages, licensesName)
	first, second := written(t, p, "v1.0.0", license), written(t, p, "v1.0.0", license)
	for format, content := range first {
		if !bytes.Equal(content, second[format]) {
			t.Errorf("two packages for %s from the same files differ", format)
		}
	}
	file := filepath.Join(t.TempDir(), "package.deb")
	require.NoError(t, os.WriteFile(file, first["deb"], 0o666))
	date := p.time.Format(" 2006-01-02 15:04 ")
	for line := range strings.Lines(command(t, ".", "dpkg-deb", "--contents", file)) {
		if !strings.Contains(line, date) {
			t.Errorf("the time of a file is not %s: %s", date, line)
		}
	}
}

// written returns the packages that p writes, by format.
func written(t *testing.T, p packager, version, binary string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	var err error
	if p.version, err = packageVersion(version); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, p.write(dir, runtime.GOARCH, binary))
	list := map[string][]byte{}
	for _, format := range []string{"deb", "rpm"} {
		found, _ := filepath.Glob(filepath.Join(dir, "*."+format)) // the pattern is valid
		if len(found) != 1 {
			t.Fatalf("packages %q, want one for %s", found, format)
		}
		content, err := os.ReadFile(found[0])
		require.NoError(t, err)
		list[format] = content
	}
	return list
}

// packageManager installs packages in a root directory.
type packageManager struct {
	root                     string
	install, upgrade, remove func(t *testing.T, file string) (printed string) // remove ignores file
	purge                    func(t *testing.T)                               // removes what remains after a removal
	own                      []string                                         // the paths of files that each family has elsewhere
	readme                   string                                           // the one that an installation names
	keepsEdited              string                                           // the path of the edited configuration after a removal
}

func newDpkg(t *testing.T) packageManager {
	root := newRoot(t)
	dpkg := func(args ...string) func(*testing.T, string) string {
		return func(t *testing.T, file string) string {
			t.Helper()
			list := append([]string{"--root=" + root, "--force-confdef", "--force-confold"}, args...)
			return command(t, root, "dpkg", append(list, file)...)
		}
	}
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	return packageManager{
		root: root, install: dpkg("--install"), upgrade: dpkg("--install"),
		remove:      func(t *testing.T, _ string) string { return dpkg("--remove")(t, "gcsup") },
		purge:       func(t *testing.T) { dpkg("--purge")(t, "gcsup") },
		own:         []string{"/usr/share/zsh/vendor-completions/_gcsup", "/usr/share/doc/gcsup/copyright", "/usr/share/doc/gcsup/changelog.gz", "/usr/share/doc/gcsup/LICENSES.txt.gz"},
		readme:      "/usr/share/doc/gcsup/README.Debian",
		keepsEdited: "/etc/gcsup/gcsup.env",
	}
}

func newRPM(t *testing.T) packageManager {
	root := newRoot(t)
	common := []string{"--root", root, "--dbpath", "/var/lib/rpm", "--nodeps"}
	if exec.Command("rpm", "--force-debian", "--version").Run() == nil {
		common = append(common, "--force-debian") // the rpm of Debian refuses to run otherwise
	}
	rpm := func(args ...string) func(*testing.T, string) string {
		return func(t *testing.T, file string) string {
			t.Helper()
			return command(t, root, "rpm", slices.Concat(common, args, []string{file})...)
		}
	}
	var first string // the package that was installed
	return packageManager{
		root: root, install: func(t *testing.T, file string) string { first = file; return rpm("--install")(t, file) }, upgrade: rpm("--upgrade"),
		remove: func(t *testing.T, _ string) string { return rpm("--erase")(t, "gcsup") },
		purge: func(t *testing.T) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(root, "etc/gcsup/gcsup.env.rpmsave")))
			rpm("--install")(t, first) // with a configuration that is not edited
			rpm("--erase")(t, "gcsup")
		},
		own:         []string{"/usr/share/zsh/site-functions/_gcsup", "/usr/share/licenses/gcsup/LICENSES.txt.gz"},
		readme:      "/usr/share/doc/gcsup/README",
		keepsEdited: "/etc/gcsup/gcsup.env.rpmsave",
	}
}

// newRoot makes a root directory with a shell, and with a systemctl that records how it was called.
func newRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	shell, err := filepath.EvalSymlinks("/bin/sh")
	require.NoError(t, err)
	copies := map[string]string{"/bin/sh": shell}
	for _, m := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllStringSubmatch(command(t, root, "ldd", shell), -1) {
		copies[m[1]] = m[1]
	}
	for to, from := range copies {
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, put(filepath.Join(root, to), content, 0o755))
	}
	for _, dir := range []string{"run/systemd/system", "usr/bin", "tmp", "var/lib/rpm"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/bin/systemctl"), []byte("#!/bin/sh\necho \"$@\" >>/calls\n"), 0o755))
	return root
}

// systemctlCalls returns the arguments of systemctl since the last call.
func (m packageManager) systemctlCalls(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(m.root, "calls")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no script of the package called systemctl: %v", err)
	}
	require.NoError(t, os.Remove(path))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// checkLifeCycle installs a package, upgrades and removes it.
func checkLifeCycle(t *testing.T, m packageManager, first, second string) {
	const reload, restart = "daemon-reload", "--no-block try-restart gcsup-wal.service"
	const stop = "disable --now gcsup-backup.timer gcsup-backup.service gcsup-wal.service"
	expectCalls := func(step string, want ...string) {
		t.Helper()
		if got := m.systemctlCalls(t); !slices.Equal(got, want) {
			t.Errorf("%s: systemctl was called with %q, want %q", step, got, want)
		}
	}
	version := func() string { // the program needs nothing else in its root
		t.Helper()
		return command(t, m.root, "chroot", m.root, "/usr/bin/gcsup", "version")
	}
	if printed := m.install(t, first); !strings.Contains(printed, "gcsup: "+m.readme+" explains") {
		t.Errorf("the installation does not name %s:\n%s", m.readme, printed)
	}
	expectCalls("install", reload)
	if got := version(); !strings.HasPrefix(got, "gcsup v1.0.0-rc.1 ") {
		t.Errorf("version %q", got)
	}
	installed := []string{
		"/usr/bin/gcsup", "/usr/share/man/man1/gcsup.1.gz", "/usr/share/man/man1/gcsup-outbox-run.1.gz", "/usr/share/man/man7/gcsup-patterns.7.gz",
		"/usr/share/bash-completion/completions/gcsup", "/usr/share/fish/vendor_completions.d/gcsup.fish", "/usr/share/man/man7/gcsup-files.7.gz",
		"/usr/lib/systemd/system/gcsup-backup.service", "/usr/lib/systemd/system/gcsup-backup.timer", "/usr/lib/systemd/system/gcsup-wal.service",
		"/etc/gcsup/gcsup.env",
	}
	installed = append(append(installed, m.readme), m.own...)
	for _, path := range installed {
		info, err := os.Stat(filepath.Join(m.root, path))
		want := fs.FileMode(0o644)
		if path == "/usr/bin/gcsup" {
			want = 0o755
		}
		if err != nil || info.Mode() != want || info.Size() == 0 {
			t.Errorf("%s: %v, %v, want a file with mode %v", path, info, err, want)
		}
	}
	edited := []byte("BUCKET=mine\n")
	env := filepath.Join(m.root, "etc/gcsup/gcsup.env")
	require.NoError(t, os.WriteFile(env, edited, 0o600))
	if printed := m.upgrade(t, second); strings.Contains(printed, m.readme) {
		t.Errorf("an upgrade printed what concerns a first installation:\n%s", printed)
	}
	expectCalls("upgrade", reload, restart)
	if got := version(); !strings.HasPrefix(got, "gcsup v1.0.0-2-gabcdef0 ") {
		t.Errorf("version %q after an upgrade", got)
	}
	if got, err := os.ReadFile(env); err != nil || !bytes.Equal(got, edited) {
		t.Errorf("the configuration after an upgrade: %q, %v", got, err)
	}
	m.remove(t, "")
	expectCalls("remove", stop, reload)
	for _, path := range installed {
		if _, err := os.Lstat(filepath.Join(m.root, path)); err == nil && path != m.keepsEdited {
			t.Errorf("%s exists after the removal", path)
		}
	}
	if got, err := os.ReadFile(filepath.Join(m.root, m.keepsEdited)); err != nil || !bytes.Equal(got, edited) {
		t.Errorf("the configuration after a removal: %q, %v", got, err)
	}
	m.purge(t)
	for _, dir := range []string{"/etc/gcsup", "/usr/share/doc/gcsup", "/usr/share/licenses/gcsup"} {
		if _, err := os.Lstat(filepath.Join(m.root, dir)); err == nil {
			t.Errorf("%s exists after the removal", dir)
		}
	}
}
