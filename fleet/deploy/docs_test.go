package deploy_test

import (
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestJobsOfDocs checks that the manifests of Kubernetes in the documents of gcsup have only fields that exist.
func TestJobsOfDocs(t *testing.T) {
	decode := func(name string, into any) {
		t.Helper()
		text, err := os.ReadFile("../../docs/how-to/schedulers/" + name)
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var job batchv1.Job
	if decode("kubernetes.yaml", &job); job.Kind != "Job" || job.Name == "" {
		t.Errorf("kubernetes.yaml is a %s %q", job.Kind, job.Name)
	}
	var nightly batchv1.CronJob
	if decode("kubernetes-nightly.yaml", &nightly); nightly.Kind != "CronJob" || nightly.Name == "" {
		t.Errorf("kubernetes-nightly.yaml is a %s %q", nightly.Kind, nightly.Name)
	}
}
