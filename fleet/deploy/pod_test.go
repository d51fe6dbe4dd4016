//go:build linux

package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// inPod runs a command like a container: the directory SECRET is a read-only mount of the key with the
// group and mode of the volume, the root is read-only, and the command has the user and the groups
// of the pod and no capabilities.
const inPod = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$SECRET"
cp "$KEY" "$SECRET/state.key"
chown "0:$FS_GROUP" "$SECRET/state.key"
chmod "$MODE" "$SECRET/state.key"
[ -z "$WRITABLE" ] && mount -o remount,ro "$SECRET"
mount -o remount,bind,ro /
touch /tmp/gcsup-pod-test 2>/dev/null && { rm /tmp/gcsup-pod-test; mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp; }
exec setpriv --reuid "$USER_ID" --regid "$GROUP_ID" --groups "$GROUPS_OF" --no-new-privs --bounding-set=-all --inh-caps=-all -- "$@"`

// TestPod starts the worker of kubernetes.yaml with the user, the groups, the mode of the key and the
// read-only root of the manifest. It joins a fleet. With other modes or groups the key is refused.
func TestPod(t *testing.T) {
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil || exec.Command("setpriv", "--version").Run() != nil {
		t.Skip("this test needs root, unshare and setpriv")
	}
	d := workers(t)
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || !slices.Contains(security.Capabilities.Drop, "ALL") {
		t.Fatalf("the container has the security context %+v", security)
	}
	var mode int32
	for _, v := range pod.Volumes {
		if v.Name == "state-key" {
			mode = *v.Secret.DefaultMode
		}
	}
	var mounted string
	for _, m := range container.VolumeMounts {
		if m.Name == "state-key" && m.ReadOnly {
			mounted = m.MountPath
		}
	}

	dir, err := os.MkdirTemp("", "pod-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	secret, key, program := filepath.Join(dir, "secret"), filepath.Join(dir, "key"), filepath.Join(dir, "gcsup-fleet")
	for _, step := range []error{
		os.Chmod(dir, 0o755), os.Mkdir(secret, 0o755), os.WriteFile(key, bytes.Repeat([]byte{1}, 32), 0o600), os.Link(gcsupFleet, program),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	fleet := filepath.Join(dir, "fleet")
	up := start(t, nil, gcsupFleet, "up", "--workers=1", "--emulator", "--fleet-dir="+fleet, "--state-key-file="+key)
	var at struct{ URL, Token, Endpoint, State string }
	await(t, up, "a server", func() bool {
		data, err := os.ReadFile(filepath.Join(fleet, "server.json"))
		return err == nil && json.Unmarshal(data, &at) == nil
	})

	// The NATS server of this test has no TLS.
	var args []string
	for _, arg := range container.Args {
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "--nats":
			arg = "--nats=" + strings.Replace(at.URL, "://", "://"+at.Token+"@", 1)
		case "--nats-ca", "--nats-cert", "--nats-key", "--nats-replicas":
			continue
		case "--listen":
			arg = "--listen=127.0.0.1:0"
		case "--state":
			arg = "--state=" + at.State
		case "--state-key-file":
			if path := strings.TrimPrefix(arg, name+"="); filepath.Dir(path) != mounted {
				t.Fatalf("the key is %s, and its volume is mounted at %q", path, mounted)
			}
			arg = "--state-key-file=" + filepath.Join(secret, "state.key")
		}
		args = append(args, arg)
	}
	run := func(change ...string) *process {
		env := append([]string{
			"SECRET=" + secret, "KEY=" + key, "STORAGE_EMULATOR_HOST=" + at.Endpoint, fmt.Sprintf("MODE=%04o", mode),
			fmt.Sprintf("USER_ID=%d", *pod.SecurityContext.RunAsUser), fmt.Sprintf("GROUP_ID=%d", *pod.SecurityContext.RunAsGroup),
			fmt.Sprintf("FS_GROUP=%d", *pod.SecurityContext.FSGroup), fmt.Sprintf("GROUPS_OF=%d", *pod.SecurityContext.FSGroup),
		}, change...)
		return start(t, env, "unshare", append([]string{"--mount", "sh", "-c", inPod, "pod", program}, args...)...)
	}
	for name, change := range map[string][]string{
		"readable by others":       {"MODE=0444"},
		"writable by the group":    {"MODE=0660"},
		"a mount that is writable": {"WRITABLE=1"},
	} {
		p := run(change...)
		<-p.done
		if code := p.cmd.ProcessState.ExitCode(); code != 66 || !strings.Contains(p.messages(), "others can access") {
			t.Errorf("%s: exit code %d: %s", name, code, p.messages())
		}
	}
	worker := run()
	var s struct {
		Workers []struct{ Name string }
	}
	await(t, worker, "the worker", func() bool {
		out, err := exec.Command(gcsupFleet, "status", "--json", "--fleet-dir="+fleet).Output()
		if err != nil || json.Unmarshal(out, &s) != nil {
			return false
		}
		return len(s.Workers) == 2 // with that of up
	})
	var health string
	for line := range strings.Lines(worker.messages()) {
		var l struct{ Msg, Addr string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Addr != "" {
			health = "http://" + l.Addr + container.ReadinessProbe.HTTPGet.Path
		}
	}
	if resp, err := http.Get(health); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the readiness probe %s: %+v, %v", health, resp, err)
	}
	_ = worker.cmd.Process.Signal(syscall.SIGTERM)
	<-worker.done
	if code := worker.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM: %s", code, worker.messages())
	}
}

// workers returns the Deployment of the workers.
func workers(t *testing.T) *appsv1.Deployment {
	t.Helper()
	data, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		d := new(appsv1.Deployment)
		if err := yaml.Unmarshal(doc, d); err == nil && d.Kind == "Deployment" {
			return d
		}
	}
	t.Fatal("kubernetes.yaml has no Deployment")
	return nil
}

// process is a running program.
type process struct {
	cmd  *exec.Cmd
	log  string // file with its standard error
	done chan struct{}
}

// start starts a program, which is killed at the end of the test.
func start(t *testing.T, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr, p.cmd.Env = log, append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
		_ = log.Close()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	return p
}

// messages returns what the process has written to standard error.
func (p *process) messages() string {
	data, _ := os.ReadFile(p.log)
	return string(data)
}

// await waits until a condition is true. It fails the test if the process ends before.
func await(t *testing.T, p *process, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		select {
		case <-p.done:
			t.Fatalf("no %s: the process ended: %s", what, p.messages())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("no %s: %s", what, p.messages())
		}
	}
}
