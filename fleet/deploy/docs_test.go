package deploy_test

import (
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestJobsOfDocs checks that the manifests of Kubernetes in the documents of gcsup have only fields that exist.
func TestJobsOfDocs(t *testing.T) {
	for _, name := range []string{"kubernetes.yaml", "kubernetes-nightly.yaml"} {
		text, err := os.ReadFile("../../docs/schedulers/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var job batchv1.Job
		if err := yaml.UnmarshalStrict(text, &job); err != nil || job.Kind != "Job" || job.Name == "" {
			t.Errorf("%s: %v, %s %q", name, err, job.Kind, job.Name)
		}
	}
}
