package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	"gcsup/upload/tree"
)

// The types of the manifests in docs/many-machines.md. They have the fields that the
// manifests use, with the names in the schedulers' references. Any other field is an
// error.
type (
	kubernetesJob struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			CompletionMode       string `yaml:"completionMode"`
			Completions          int
			Parallelism          int
			BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
			PodFailurePolicy     struct {
				Rules []struct {
					Action          string
					OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
					OnExitCodes     struct {
						ContainerName string `yaml:"containerName"`
						Operator      string
						Values        []int
					} `yaml:"onExitCodes"`
				}
			} `yaml:"podFailurePolicy"`
			Template struct {
				Spec struct {
					RestartPolicy                 string `yaml:"restartPolicy"`
					ServiceAccountName            string `yaml:"serviceAccountName"`
					TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
					Containers                    []yamlContainer
					Volumes                       []struct {
						Name                  string
						PersistentVolumeClaim struct {
							ClaimName string `yaml:"claimName"`
						} `yaml:"persistentVolumeClaim"`
					}
				}
			}
		}
	}

	cloudRunJob struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					TaskCount   int `yaml:"taskCount"`
					Parallelism int
					Template    struct {
						Spec struct {
							MaxRetries         int    `yaml:"maxRetries"`
							TimeoutSeconds     int    `yaml:"timeoutSeconds"`
							ServiceAccountName string `yaml:"serviceAccountName"`
							Containers         []yamlContainer
							Volumes            []struct {
								Name string
								NFS  struct{ Server, Path string }
							}
						}
					}
				}
			}
		}
	}

	yamlContainer struct {
		Name, Image   string
		Command, Args []string
		VolumeMounts  []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}

	batchJob struct {
		TaskGroups []struct {
			TaskCount   int `json:"taskCount,string"`
			Parallelism int `json:"parallelism,string"`
			TaskSpec    struct {
				Runnables []struct {
					Container struct {
						ImageURI   string   `json:"imageUri"`
						Entrypoint string   `json:"entrypoint"`
						Commands   []string `json:"commands"`
					} `json:"container"`
				} `json:"runnables"`
				Volumes []struct {
					NFS struct {
						Server     string `json:"server"`
						RemotePath string `json:"remotePath"`
					} `json:"nfs"`
					MountPath string `json:"mountPath"`
				} `json:"volumes"`
				MaxRetryCount     int    `json:"maxRetryCount"`
				MaxRunDuration    string `json:"maxRunDuration"`
				LifecyclePolicies []struct {
					Action          string `json:"action"`
					ActionCondition struct {
						ExitCodes []int `json:"exitCodes"`
					} `json:"actionCondition"`
				} `json:"lifecyclePolicies"`
			} `json:"taskSpec"`
		} `json:"taskGroups"`
		LogsPolicy struct {
			Destination string `json:"destination"`
		} `json:"logsPolicy"`
	}
)

// manifestOf returns the manifest in a section of docs/many-machines.md.
func manifestOf(t *testing.T, section, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/many-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	_, block, found := strings.Cut(rest, "\n```"+language+"\n")
	block, _, _ = strings.Cut(block, "\n```")
	if !ok || !found {
		t.Fatalf("docs/many-machines.md has no block of %s under %s", language, section)
	}
	return block + "\n"
}

func decodeYAML(t *testing.T, text string, into any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// checkShards checks a command line of gcsup. The tasks must get the shards from 0
// to count-1 from their variables.
func checkShards(t *testing.T, args []string, count int, variables func(task int) map[string]string) {
	t.Helper()
	if count < 2 {
		t.Fatalf("%d tasks", count)
	}
	root, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard})
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
func checkMounts(t *testing.T, c yamlContainer, volume string) {
	t.Helper()
	if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != volume {
		t.Errorf("the container mounts %v, want the volume %q", c.VolumeMounts, volume)
		return
	}
	checkPaths(t, c.Args, c.VolumeMounts[0].MountPath)
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

func TestKubernetesManifest(t *testing.T) {
	var job kubernetesJob
	decodeYAML(t, manifestOf(t, "Kubernetes", "yaml"), &job)
	spec := job.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Metadata.Name == "" || spec.CompletionMode != "Indexed" {
		t.Errorf("it is not an Indexed Job: %+v", job)
	}
	pod := spec.Template.Spec
	// A failure policy and a limit per index need this restart policy.
	if pod.RestartPolicy != "Never" || spec.BackoffLimitPerIndex < 1 {
		t.Errorf("restartPolicy %q, backoffLimitPerIndex %d", pod.RestartPolicy, spec.BackoffLimitPerIndex)
	}
	container := pod.Containers[0]
	rules := spec.PodFailurePolicy.Rules
	if len(rules) != 2 || rules[0].Action != "Ignore" || rules[0].OnPodConditions[0].Type != "DisruptionTarget" {
		t.Fatalf("rules %+v", rules)
	}
	if codes := rules[1].OnExitCodes; rules[1].Action != "FailIndex" || codes.ContainerName != container.Name || codes.Operator != "In" {
		t.Errorf("rule %+v", rules[1])
	}
	checkFinal(t, rules[1].OnExitCodes.Values)
	checkMounts(t, container, pod.Volumes[0].Name)
	checkShards(t, container.Args, spec.Completions, func(task int) map[string]string {
		return map[string]string{"JOB_COMPLETION_INDEX": strconv.Itoa(task)}
	})
}

func TestCloudRunManifest(t *testing.T) {
	var job cloudRunJob
	decodeYAML(t, manifestOf(t, "Cloud Run", "yaml"), &job)
	if job.APIVersion != "run.googleapis.com/v1" || job.Kind != "Job" || job.Metadata.Name == "" {
		t.Errorf("it is not a job of Cloud Run: %+v", job)
	}
	execution := job.Spec.Template
	var network []struct{ Network, Subnetwork string }
	if err := json.Unmarshal([]byte(execution.Metadata.Annotations["run.googleapis.com/network-interfaces"]), &network); err != nil || len(network) != 1 {
		t.Errorf("annotations %v: %v", execution.Metadata.Annotations, err)
	}
	task := execution.Spec.Template.Spec
	if task.MaxRetries < 1 || task.TimeoutSeconds <= 600 || task.TimeoutSeconds > 86400 {
		t.Errorf("maxRetries %d, timeoutSeconds %d", task.MaxRetries, task.TimeoutSeconds)
	}
	checkMounts(t, task.Containers[0], task.Volumes[0].Name)
	count := execution.Spec.TaskCount
	checkShards(t, task.Containers[0].Args, count, func(task int) map[string]string {
		return map[string]string{"CLOUD_RUN_TASK_INDEX": strconv.Itoa(task), "CLOUD_RUN_TASK_COUNT": strconv.Itoa(count)}
	})
}

func TestBatchManifest(t *testing.T) {
	var job batchJob
	d := json.NewDecoder(strings.NewReader(manifestOf(t, "Batch", "json")))
	d.DisallowUnknownFields()
	if err := d.Decode(&job); err != nil {
		t.Fatal(err)
	}
	group := job.TaskGroups[0]
	spec := group.TaskSpec
	if len(spec.LifecyclePolicies) != 1 || spec.LifecyclePolicies[0].Action != "FAIL_TASK" || spec.MaxRetryCount < 1 || spec.MaxRetryCount > 10 {
		t.Errorf("maxRetryCount %d, lifecyclePolicies %+v", spec.MaxRetryCount, spec.LifecyclePolicies)
	}
	checkFinal(t, spec.LifecyclePolicies[0].ActionCondition.ExitCodes)
	commands := spec.Runnables[0].Container.Commands
	checkPaths(t, commands, spec.Volumes[0].MountPath)
	checkShards(t, commands, group.TaskCount, func(task int) map[string]string {
		return map[string]string{"BATCH_TASK_INDEX": strconv.Itoa(task), "BATCH_TASK_COUNT": strconv.Itoa(group.TaskCount)}
	})
}

// TestSlurmScript runs the script with a srun and a scontrol that print their
// arguments.
func TestSlurmScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	text := manifestOf(t, "Slurm", "bash")
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
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
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
