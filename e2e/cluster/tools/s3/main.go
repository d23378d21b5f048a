// An S3 store over a folder of this machine: Versity's gateway with one account, and without the clouds, queues and directories that all of
// it can speak to.
package main

import (
	"fmt"
	"os"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
)

const version = "1.8.0"

// Connections and requests at a time.
const most = 256

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("s3-folder", version)
		return
	}
	if len(os.Args) != 7 {
		fmt.Fprintln(os.Stderr, "s3-folder ADDRESS REGION ACCESS-KEY SECRET-KEY BUCKETS-FOLDER ATTRIBUTES-FOLDER")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Attributes of objects lie beside them, since not every file system of a temporary folder keeps any.
func serve(address, region, access, secret, buckets, attributes string) error {
	beside, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	store, err := posix.New(buckets, beside, posix.PosixOpts{SideCarDir: attributes})
	if err != nil {
		return err
	}
	root := middlewares.RootUserConfig{Access: access, Secret: secret}
	account := auth.Account{Access: access, Secret: secret, Role: auth.RoleAdmin}
	server, err := s3api.New(
		store, root, region, auth.NewIAMServiceSingle(account), nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithConcurrencyLimiter(most, most),
	)
	if err != nil {
		return err
	}
	return server.ServeMultiPort([]string{address})
}
