package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/upload/tree"
)

// node is a decoded manifest, or a part of it: a map, a list or a value.
type node struct {
	t     *testing.T
	value any
}

// at returns the part at a path of keys and indexes. A part that is missing fails the test.
func (n node) at(path ...any) node {
	n.t.Helper()
	for _, step := range path {
		var next any
		switch key := step.(type) {
		case string:
			fields, _ := n.value.(map[string]any)
			next = fields[key]
		case int:
			if list, _ := n.value.([]any); key < len(list) {
				next = list[key]
			}
		}
		if next == nil {
			n.t.Fatalf("the manifest has no %v of %v", step, path)
		}
		n.value = next
	}
	return n
}

func (n node) text() string { return fmt.Sprint(n.value) }

func (n node) number() int {
	n.t.Helper()
	i, err := strconv.Atoi(n.text())
	require.NoError(n.t, err)
	return i
}

func (n node) len() int {
	list, _ := n.value.([]any)
	return len(list)
}

func (n node) texts() (all []string) {
	for i := range n.len() {
		all = append(all, n.at(i).text())
	}
	return all
}

func (n node) numbers() (all []int) {
	for i := range n.len() {
		all = append(all, n.at(i).number())
	}
	return all
}

// manifestOf returns a file of docs/how-to/schedulers.
func manifestOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "schedulers", name))
	require.NoError(t, err)
	return string(text)
}

// decode decodes a manifest in YAML or JSON.
func decode(t *testing.T, text string) node {
	t.Helper()
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value))
	return node{t, value}
}

// checkShards checks a command line of gcsup. The tasks must get the shards from 0
// to count-1 from their variables.
func checkShards(t *testing.T, args []string, count int, variables func(task int) map[string]string) {
	t.Helper()
	if count < 2 {
		t.Fatalf("%d tasks", count)
	}
	root := commands()
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil || cmd.Name() != "cp" {
		t.Fatalf("gcsup %q: %v", args, err)
	}
	sources := cmd.Flags().Args()
	if len(sources) != 2 || !strings.HasSuffix(sources[0], "/data/.") || sources[1] != "gs://my-bucket/data" {
		t.Errorf("gcsup %q: source and destination are %q", args, sources)
	}
	for _, skips := range []string{"manifest", "no-clobber", "skip-identical", ""} {
		if skips == "" {
			t.Errorf("gcsup %q: a retry uploads everything again", args)
		} else if cmd.Flags().Changed(skips) {
			break
		}
	}
	for task := range count {
		env := variables(task)
		shard, err := tree.ParseShard(cmd.Flag("shard").Value.String(), func(name string) string { return env[name] })
		if want := (tree.Shard{Index: task, Count: count}); err != nil || shard != want {
			t.Errorf("--shard %s with %v is %v, %v; want %v", cmd.Flag("shard").Value, env, shard, err, want)
		}
	}
}

// checkFinal checks that the exit codes that a manifest does not retry are those of
// the page, and that a retry helps for none of them.
func checkFinal(t *testing.T, codes []int) {
	t.Helper()
	if want := []int{exit.Usage, exit.Data, exit.NoInput, exit.Unavailable, exit.Exists, exit.Permission, exit.Config}; !slices.Equal(codes, want) {
		t.Errorf("the exit codes that are not retried are %v, want %v", codes, want)
	}
}

// checkMounts checks that the volumes that a container mounts exist, and that the
// paths of its command are on them.
func checkMounts(t *testing.T, container node, volume string) {
	t.Helper()
	mounts := container.at("volumeMounts")
	if mounts.len() != 1 || mounts.at(0, "name").text() != volume {
		t.Errorf("the container mounts %v, want the volume %q", mounts.value, volume)
		return
	}
	checkPaths(t, container.at("args").texts(), mounts.at(0, "mountPath").text())
}

func checkPaths(t *testing.T, args []string, mounted string) {
	t.Helper()
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, path := range []string{arg, value} {
			if filepath.IsAbs(path) && !strings.HasPrefix(path, mounted+"/") {
				t.Errorf("%s is not below the mounted %s", path, mounted)
			}
		}
	}
}

// TestKubernetesManifest checks what the manifest means. A test of module gcsup/fleet/deploy checks its fields.
func TestKubernetesManifest(t *testing.T) {
	spec := decode(t, manifestOf(t, "kubernetes.yaml")).at("spec")
	pod := spec.at("template", "spec")
	// A failure policy and a limit per index need this restart policy.
	if pod.at("restartPolicy").text() != "Never" || spec.at("backoffLimitPerIndex").number() < 1 || spec.at("completionMode").text() != "Indexed" {
		t.Errorf("spec %v", spec.value)
	}
	container := pod.at("containers", 0)
	rules := spec.at("podFailurePolicy", "rules")
	if rules.len() != 2 || rules.at(0, "action").text() != "Ignore" || rules.at(0, "onPodConditions", 0, "type").text() != "DisruptionTarget" {
		t.Fatalf("rules %v", rules.value)
	}
	codes := rules.at(1, "onExitCodes")
	if rules.at(1, "action").text() != "FailIndex" || codes.at("containerName").text() != container.at("name").text() || codes.at("operator").text() != "In" {
		t.Errorf("rule %v", rules.at(1).value)
	}
	checkFinal(t, codes.at("values").numbers())
	checkMounts(t, container, pod.at("volumes", 0, "name").text())
	checkShards(t, container.at("args").texts(), spec.at("completions").number(), func(task int) map[string]string {
		return map[string]string{"JOB_COMPLETION_INDEX": strconv.Itoa(task)}
	})
}

func TestCloudRunManifest(t *testing.T) {
	job := decode(t, manifestOf(t, "cloud-run.yaml"))
	if job.at("apiVersion").text() != "run.googleapis.com/v1" || job.at("kind").text() != "Job" || job.at("metadata", "name").text() == "" {
		t.Errorf("it is not a job of Cloud Run: %v", job.value)
	}
	execution := job.at("spec", "template")
	var network []struct{ Network, Subnetwork string }
	annotation := execution.at("metadata", "annotations", "run.googleapis.com/network-interfaces").text()
	if err := json.Unmarshal([]byte(annotation), &network); err != nil || len(network) != 1 {
		t.Errorf("annotation %s: %v", annotation, err)
	}
	task := execution.at("spec", "template", "spec")
	if timeout := task.at("timeoutSeconds").number(); task.at("maxRetries").number() < 1 || timeout <= 600 || timeout > 86400 {
		t.Errorf("task %v", task.value)
	}
	container := task.at("containers", 0)
	checkMounts(t, container, task.at("volumes", 0, "name").text())
	count := execution.at("spec", "taskCount").number()
	checkShards(t, container.at("args").texts(), count, func(task int) map[string]string {
		return map[string]string{"CLOUD_RUN_TASK_INDEX": strconv.Itoa(task), "CLOUD_RUN_TASK_COUNT": strconv.Itoa(count)}
	})
}

func TestBatchManifest(t *testing.T) {
	group := decode(t, manifestOf(t, "batch.json")).at("taskGroups", 0)
	spec := group.at("taskSpec")
	policies := spec.at("lifecyclePolicies")
	if retries := spec.at("maxRetryCount").number(); policies.len() != 1 || policies.at(0, "action").text() != "FAIL_TASK" || retries < 1 || retries > 10 {
		t.Errorf("maxRetryCount %d, lifecyclePolicies %v", retries, policies.value)
	}
	checkFinal(t, policies.at(0, "actionCondition", "exitCodes").numbers())
	commands := spec.at("runnables", 0, "container", "commands").texts()
	checkPaths(t, commands, spec.at("volumes", 0, "mountPath").text())
	count := group.at("taskCount").number()
	checkShards(t, commands, count, func(task int) map[string]string {
		return map[string]string{"BATCH_TASK_INDEX": strconv.Itoa(task), "BATCH_TASK_COUNT": strconv.Itoa(count)}
	})
}

// TestSlurmScript runs the script with a srun and a scontrol that print their
// arguments.
func TestSlurmScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	text := manifestOf(t, "slurm.sh")
	options := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#SBATCH --([a-z-]+)(?:=(.*))?$`).FindAllStringSubmatch(text, -1) {
		options[m[1]] = m[2]
	}
	for _, name := range []string{"array", "job-name", "ntasks", "time", "signal", "requeue", "open-mode"} {
		if _, ok := options[name]; !ok {
			t.Errorf("no option --%s", name)
		}
		delete(options, name)
	}
	if len(options) > 0 {
		t.Errorf("options %v are not known to this test", options)
	}
	var least, most int
	if _, err := fmt.Sscanf(regexp.MustCompile(`--array=\S+`).FindString(text), "--array=%d-%d", &least, &most); err != nil {
		t.Fatal(err)
	}
	variables := func(task int) map[string]string {
		env := map[string]string{"SLURM_ARRAY_JOB_ID": "77"}
		for name, n := range map[string]int{"ID": least + task, "MIN": least, "MAX": most, "STEP": 1, "COUNT": most - least + 1} {
			env["SLURM_ARRAY_TASK_"+name] = strconv.Itoa(n)
		}
		return env
	}
	bin := t.TempDir()
	for name, script := range map[string]string{
		"srun":     "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit $CODE\n",
		"scontrol": "#!/bin/sh\necho scontrol \"$@\"\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	runScript := func(code int, more ...string) []string {
		cmd := exec.Command(bash, "-c", text)
		cmd.Env = append(append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "CODE="+strconv.Itoa(code)), more...)
		for name, value := range variables(3) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("exit code %d, want %d (%v)", got, code, err)
		}
		return strings.Split(strings.TrimSpace(string(bytes.TrimSpace(out))), "\n")
	}
	words := runScript(0)
	if words[0] != "gcsup" {
		t.Fatalf("srun %q", words)
	}
	checkPaths(t, words[1:], "/share")
	checkShards(t, words[1:], most-least+1, variables)
	const requeue = "scontrol requeue 77_3"
	if words := runScript(75); words[len(words)-1] != requeue {
		t.Errorf("75 does not requeue the task: %q", words)
	}
	if words := runScript(75, "SLURM_RESTART_COUNT=5"); slices.Contains(words, requeue) {
		t.Errorf("the task is requeued more than five times: %q", words)
	}
	if words := runScript(66); slices.Contains(words, requeue) {
		t.Errorf("66 requeues the task: %q", words)
	}
}
