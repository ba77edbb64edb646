"""A program for the environment of moto: an S3 on loopback with buckets, until its input ends.

It says its port, and counts the copies that it is asked for: S3 has no rename.
"""

import json
import sys
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

READ_ONLY, SECRET = ("s3:PutObject", "s3:DeleteObject"), ("s3:GetObject", "s3:HeadObject")

copies = 0
moto = DomainDispatcherApplication(create_backend_app)


def serve(environ: dict[str, Any], start_response: Any) -> Any:
    global copies
    if environ["PATH_INFO"] == "/copies":
        start_response("200 OK", [])
        return [str(copies).encode()]
    copies += "HTTP_X_AMZ_COPY_SOURCE" in environ
    return moto(environ, start_response)


server = make_server("127.0.0.1", 0, serve, threaded=True)
address = f"http://127.0.0.1:{server.port}"


def run() -> None:
    import threading

    threading.Thread(target=server.serve_forever, daemon=True).start()
    s3 = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    for bucket, denied in (("fleets", ()), ("read-only", READ_ONLY), ("secret", SECRET)):
        s3.create_bucket(Bucket=bucket)
        if denied:
            statement = {
                "Effect": "Deny",
                "Principal": "*",
                "Action": list(denied),
                "Resource": f"arn:aws:s3:::{bucket}/*",
            }
            policy = {"Version": "2012-10-17", "Statement": [statement]}
            if bucket == "secret":
                s3.put_object(Bucket=bucket, Key="fleet/members.csv", Body=b"group_id\n")
                s3.put_object(Bucket=bucket, Key="fleet/topics.csv", Body=b"topic\n")
            s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))
    print(address, flush=True)
    sys.stdin.read()


run()
