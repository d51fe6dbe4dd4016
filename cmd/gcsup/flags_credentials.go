package main

import (
	"strings"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/upload/gcs"
)

// credentialFlags select the credentials.
type credentialFlags struct {
	file        string
	impersonate string // email addresses, separated by commas
}

func (f *credentialFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "credentials-file", "", "use the credentials in `FILE` (default: $GOOGLE_APPLICATION_CREDENTIALS, else those of gcloud or of the machine)")
	fs.StringVar(&f.impersonate, "impersonate-service-account", "", "act as the service account with this `EMAIL`; delegates come before it, separated by commas")
}

// check refuses values that name no service account.
func (f *credentialFlags) check() error {
	if f.impersonate == "" {
		return nil
	}
	for account := range strings.SplitSeq(f.impersonate, ",") {
		name, domain, ok := strings.Cut(account, "@")
		if !ok || name == "" || domain == "" || strings.ContainsAny(account, "/: \t") {
			return exit.Usagef("--impersonate-service-account %q: want the email address of a service account, such as NAME@PROJECT.iam.gserviceaccount.com", account)
		}
	}
	return nil
}

// set sets the options of a client.
func (f *credentialFlags) set(o *gcs.Options) {
	o.CredentialsFile = f.file
	if f.impersonate == "" {
		return
	}
	accounts := strings.Split(f.impersonate, ",")
	last := len(accounts) - 1
	o.ImpersonateServiceAccount, o.Delegates = accounts[last], accounts[:last]
}
