package deploy_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// gcsupFleet is the program, built once for all tests.
var gcsupFleet string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "deploy-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		gcsupFleet = filepath.Join(dir, "gcsup-fleet")
		cmd := exec.Command("go", "build", "-o", gcsupFleet, "./cmd/gcsup-fleet")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// TestKubernetes decodes each manifest into the type of its kind and fails for unknown fields. The
// secrets and config maps must be those in the README, and the flags must exist.
func TestKubernetes(t *testing.T) {
	data := manifests(t)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		var into any
		var pod *corev1.PodTemplateSpec
		switch head.APIVersion + " " + head.Kind {
		case "v1 Service":
			into = new(corev1.Service)
		case "v1 ServiceAccount":
			into = new(corev1.ServiceAccount)
		case "networking.k8s.io/v1 NetworkPolicy":
			into = new(networkingv1.NetworkPolicy)
		case "policy/v1 PodDisruptionBudget":
			into = new(policyv1.PodDisruptionBudget)
		case "apps/v1 StatefulSet":
			s := new(appsv1.StatefulSet)
			into, pod = s, &s.Spec.Template
		case "apps/v1 Deployment":
			d := new(appsv1.Deployment)
			into, pod = d, &d.Spec.Template
		case "batch/v1 Job":
			j := new(batchv1.Job)
			into, pod = j, &j.Spec.Template
		default:
			t.Fatalf("unknown kind %+v", head)
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
			continue
		}
		kinds[head.Kind]++
		if pod == nil {
			continue
		}
		checkVolumes(t, &pod.Spec, string(readme))
		if c := pod.Spec.Containers[0]; c.Image == "REGISTRY/gcsup-fleet" {
			checkFlags(t, c.Args)
		}
	}
	if kinds["StatefulSet"] != 1 || kinds["Deployment"] != 1 || kinds["Job"] != 2 {
		t.Errorf("the manifests are %v", kinds)
	}
}

// manifests returns the manifests of both files.
func manifests(t *testing.T) []byte {
	t.Helper()
	var files [][]byte
	for _, name := range []string{"kubernetes.yaml", "job.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	return bytes.Join(files, []byte("\n---\n"))
}

// TestDockerfile checks that the image has nothing but one static program and certificates, and does not run it as root.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../cmd/gcsup-fleet/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	command, err := os.ReadFile("../../cmd/gcsup/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, image, _ := strings.Cut(string(text), "\nFROM scratch\n")
	if image != "COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\nCOPY --from=build /gcsup-fleet /gcsup-fleet\nUSER 65532:65532\nENTRYPOINT [\"/gcsup-fleet\"]\n" {
		t.Errorf("the image is\n%s", image)
	}
	if flags := regexp.MustCompile(`CGO_ENABLED=0 go build .* -o `); flags.FindString(string(text)) != flags.FindString(string(command)) {
		t.Errorf("the program is built with %q, and gcsup with %q", flags.FindString(string(text)), flags.FindString(string(command)))
	}
}

// checkVolumes checks that each mount has a volume, that each volume is mounted, and that the commands
// in the README make the secrets and config maps of the volumes.
func checkVolumes(t *testing.T, spec *corev1.PodSpec, readme string) {
	t.Helper()
	mounted := map[string]bool{}
	for _, m := range spec.Containers[0].VolumeMounts {
		mounted[m.Name] = true
	}
	names := map[string]bool{"data": true} // a claim of the stateful set
	for _, v := range spec.Volumes {
		names[v.Name] = true
		if !mounted[v.Name] {
			t.Errorf("the volume %s is not mounted", v.Name)
		}
		var made string
		switch {
		case v.Secret != nil:
			made = "create secret generic " + v.Secret.SecretName
		case v.ConfigMap != nil:
			made = "create configmap " + v.ConfigMap.Name
		}
		if !strings.Contains(readme, made) {
			t.Errorf("README.md does not have %q", made)
		}
	}
	for name := range mounted {
		if !names[name] {
			t.Errorf("there is no volume %s", name)
		}
	}
}

// checkFlags checks that a command of the program has these flags.
func checkFlags(t *testing.T, args []string) {
	t.Helper()
	help, err := exec.Command(gcsupFleet, "help", "flags", args[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("help flags %s: %v\n%s", args[0], err, help)
	}
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(name, "-") {
			continue
		}
		if !regexp.MustCompile(regexp.QuoteMeta(name) + `[ ,]`).Match(help) {
			t.Errorf("%s has no flag %s", args[0], name)
		}
	}
}

// TestSystemd checks the flags of the unit, and runs systemd-analyze on it if that is installed.
func TestSystemd(t *testing.T) {
	const unit = "gcsup-fleet@.service"
	data, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ExecStart=(/\S+) (.*)$`).FindSubmatch(data)
	if m == nil {
		t.Fatal("the unit has no ExecStart")
	}
	checkFlags(t, strings.Fields(string(m[2])))

	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd is not installed, and has not checked the unit")
		return
	}
	// systemd-analyze requires that the program exists, and an instance name.
	dir := t.TempDir()
	path := filepath.Join(dir, "gcsup-fleet@1.service")
	if err := os.WriteFile(path, bytes.ReplaceAll(data, m[1], []byte(gcsupFleet)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// TestCertificates checks that the certificates of certs.sh match the servers in kubernetes.yaml and
// nats.conf, and the users in nats.conf.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("sh", "certs.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var text []byte
	for _, name := range []string{"kubernetes.yaml", "nats.conf"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, data...)
	}
	check := func(name string, hosts [][][]byte) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name+".crt"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(data)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if len(hosts) == 0 {
			t.Errorf("no names for %s", name)
		}
		for _, h := range hosts {
			if err := cert.VerifyHostname(string(h[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	check("server", regexp.MustCompile(`(?:tls|nats-route)://([^:]+):`).FindAllSubmatch(text, -1))
	check("worker", regexp.MustCompile(`user: "(worker[^"]*)"`).FindAllSubmatch(text, -1))
	check("operator", regexp.MustCompile(`user: "(operator[^"]*)"`).FindAllSubmatch(text, -1))
}
